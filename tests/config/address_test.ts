import { assertEquals } from "@std/assert";
import { inspect } from "node:util";
import {
  isSameAddress,
  namesPassword,
  readLimitsAddress,
  readStoreAddress,
  shownAddress,
} from "../../lib/config/address.ts";

Deno.test("readStoreAddress() tells the kinds of stores apart", () => {
  assertEquals(readStoreAddress("memory:"), { kind: "memory" });
  assertEquals(readStoreAddress("sqlite:./a b.db"), { kind: "sqlite", path: "./a b.db" });
  for (const text of ["postgres://db/sluice", "postgresql://u:p@db:6543/sluice?sslmode=require"]) {
    const address = readStoreAddress(text);
    assertEquals(address.kind === "postgres" && address.url.reveal(), text);
  }
});

Deno.test("readLimitsAddress() tells Redis from memory", () => {
  assertEquals(readLimitsAddress("memory:"), { kind: "memory" });
  for (const text of ["redis://cache", "rediss://:p@cache:6380/1"]) {
    const address = readLimitsAddress(text);
    assertEquals(address.kind === "redis" && address.url.reveal(), text);
  }
});

Deno.test("shownAddress() leaves the password out, wherever it stands", () => {
  const stores: [string, string][] = [
    ["memory:", "memory:"],
    ["sqlite:./data/sluice.db", "sqlite:./data/sluice.db"],
    ["postgres://db/sluice", "postgres://db/sluice"],
    ["postgres://u:hunter2@db:6543/sluice", "postgres://u@db:6543/sluice"],
    ["postgres://u:hun%74er2@db/sluice?sslmode=require", "postgres://u@db/sluice?sslmode=require"],
    ["postgres://db/sluice?user=u&password=hunter2", "postgres://db/sluice?user=u"],
    ["postgres://u:hunter2@db:99999/sluice", "[secret]"],
  ];
  for (const [text, shown] of stores) assertEquals(shownAddress(readStoreAddress(text)), shown);
  assertEquals(shownAddress(readLimitsAddress("redis://:hunter2@cache:1/2")), "redis://cache:1/2");
  assertEquals(shownAddress(readLimitsAddress("rediss://u:hunter2@cache?password=hunter2")), "rediss://u@cache");
});

Deno.test("an address writes itself without its password", () => {
  for (const address of [readStoreAddress("postgres://u:hunter2@db/s"), readLimitsAddress("redis://:hunter2@cache")]) {
    const written = [JSON.stringify(address), Deno.inspect(address), inspect(address), JSON.stringify({ ...address })];
    assertEquals(written.filter((text) => text.includes("hunter2")), []);
  }
});

Deno.test("namesPassword() tells addresses with a password, and what is no address", () => {
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
  for (const [text, names] of cases) assertEquals(namesPassword(text), names, text);
});

Deno.test("isSameAddress() takes passwords for a difference", () => {
  const one = readStoreAddress("postgres://u:a@db/s");
  assertEquals(isSameAddress(one, readStoreAddress("postgres://u:a@db/s")), true);
  assertEquals(isSameAddress(one, readStoreAddress("postgres://u:b@db/s")), false);
  assertEquals(isSameAddress(readStoreAddress("sqlite:a"), readStoreAddress("sqlite:b")), false);
  assertEquals(isSameAddress(readStoreAddress("memory:"), readLimitsAddress("memory:")), true);
});
