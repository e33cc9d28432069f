import { assert, assertEquals } from "@std/assert";
import { UnsupportedParameters } from "../../lib/protocols/canonical/unsupported_parameters.ts";
import { droppedHeader } from "../../lib/request/write_response.ts";

function headerOf(...names: string[]): string | undefined {
  const dropped = new UnsupportedParameters();
  for (const name of names) dropped.add(name);
  return Object.fromEntries(droppedHeader(dropped))["x-sluice-dropped"];
}

Deno.test("droppedHeader() names each dropped parameter once", () => {
  assertEquals(headerOf(), undefined);
  assertEquals(headerOf("top_k"), "top_k");
  assertEquals(headerOf("top_k", "messages.name", "top_k"), "top_k, messages.name");
});

Deno.test("droppedHeader() is a legal header for any name", () => {
  const cases: [string, string][] = [
    ["a,b", "a%2Cb"],
    ["a b", "a%20b"],
    ["a\r\nb: c", "a%0D%0Ab:%20c"],
    ["100%", "100%25"],
    ["\ud800x", "%EF%BF%BDx"],
    ["\u0000", "%00"],
    ["日本", "%E6%97%A5%E6%9C%AC"],
    ["🙂", "%F0%9F%99%82"],
  ];
  for (const [name, written] of cases) {
    assertEquals(headerOf(name), written);
    assertEquals(new Headers({ x: written }).get("x"), written);
  }
});

Deno.test("droppedHeader() shortens a long list, and shows that it did", () => {
  const long = headerOf(...Array.from({ length: 1_000 }, (_, index) => `member_${index}`)) ?? "";
  assert(long.length <= 2_010 && long.endsWith(", ..."), `${long.length}`);
  assertEquals(headerOf("x".repeat(5_000)), "...");
  assertEquals(headerOf("a", "x".repeat(5_000), "b"), "a, ...");
});
