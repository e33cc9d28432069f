import { assertEquals } from "@std/assert";
import { inspect } from "node:util";
import {
  addressWithoutPassword,
  containsPassword,
  parseLimitsAddress,
  parseStoreAddress,
} from "../../lib/config/address.ts";
import { configDigest } from "../../lib/config/digest.ts";

Deno.test("parseStoreAddress() distinguishes the kinds of stores", () => {
  assertEquals(parseStoreAddress("memory:"), { kind: "memory" });
  assertEquals(parseStoreAddress("sqlite:./a b.db"), { kind: "sqlite", path: "./a b.db" });
  for (const text of ["postgres://db/sluice", "postgresql://u:p@db:6543/sluice?sslmode=require"]) {
    const address = parseStoreAddress(text);
    assertEquals(address.kind === "postgres" && address.url.reveal(), text);
  }
});

Deno.test("parseLimitsAddress() distinguishes Redis from memory", () => {
  assertEquals(parseLimitsAddress("memory:"), { kind: "memory" });
  for (const text of ["redis://cache", "rediss://:p@cache:6380/1"]) {
    const address = parseLimitsAddress(text);
    assertEquals(address.kind === "redis" && address.url.reveal(), text);
  }
});

Deno.test("addressWithoutPassword() removes the password in every position", () => {
  const stores: [string, string][] = [
    ["memory:", "memory:"],
    ["sqlite:./data/sluice.db", "sqlite:./data/sluice.db"],
    ["postgres://db/sluice", "postgres://db/sluice"],
    ["postgres://u:hunter2@db:6543/sluice", "postgres://u@db:6543/sluice"],
    ["postgres://u:hun%74er2@db/sluice?sslmode=require", "postgres://u@db/sluice?sslmode=require"],
    ["postgres://db/sluice?user=u&password=hunter2", "postgres://db/sluice?user=u"],
    ["postgres://u:hunter2@db:99999/sluice", "[secret]"],
  ];
  for (const [text, shown] of stores) assertEquals(addressWithoutPassword(parseStoreAddress(text)), shown);
  assertEquals(addressWithoutPassword(parseLimitsAddress("redis://:hunter2@cache:1/2")), "redis://cache:1/2");
  assertEquals(
    addressWithoutPassword(parseLimitsAddress("rediss://u:hunter2@cache?password=hunter2")),
    "rediss://u@cache",
  );
});

Deno.test("an address is serialized without its password", () => {
  for (
    const address of [parseStoreAddress("postgres://u:hunter2@db/s"), parseLimitsAddress("redis://:hunter2@cache")]
  ) {
    const written = [JSON.stringify(address), Deno.inspect(address), inspect(address), JSON.stringify({ ...address })];
    assertEquals(written.filter((text) => text.includes("hunter2")), []);
  }
});

Deno.test("containsPassword() finds passwords, and is undefined for invalid addresses", () => {
  const cases: [string, boolean | undefined][] = [
    ["memory:", false],
    ["sqlite:a:b@c", false],
    ["postgres://u@db/s", false],
    ["postgres://u:p@db/s", true],
    ["postgres://db/s?password=p", true],
    ["redis://:p@cache", true],
    ["redis://cache/1", false],
    ["postgres://u:p@db:99999/s", undefined],
  ];
  for (const [text, names] of cases) assertEquals(containsPassword(text), names, text);
});

Deno.test("configDigest() covers passwords of addresses", () => {
  const isSameAddress = (a: unknown, b: unknown) => configDigest(a) === configDigest(b);
  const one = parseStoreAddress("postgres://u:a@db/s");
  assertEquals(isSameAddress(one, parseStoreAddress("postgres://u:a@db/s")), true);
  assertEquals(isSameAddress(one, parseStoreAddress("postgres://u:b@db/s")), false);
  assertEquals(isSameAddress(parseStoreAddress("sqlite:a"), parseStoreAddress("sqlite:b")), false);
  assertEquals(isSameAddress(parseStoreAddress("memory:"), parseLimitsAddress("memory:")), true);
});
