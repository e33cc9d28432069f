import { assert, assertEquals, assertMatch, assertNotEquals, assertThrows } from "@std/assert";
import { createKeyRing, hashKey, isIssued, issueKey, mintKey } from "../../lib/access/keys.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { GatewayError } from "../../lib/errors.ts";
import { openMemoryStore } from "../../lib/store/memory.ts";
import type { Store } from "../../lib/store/store.ts";

const FIXED = mintKey((bytes) => bytes.forEach((_, index) => bytes[index] = index));

Deno.test("mintKey() makes prefix, 256 random bits and a checksum", () => {
  assertEquals(FIXED.slice(0, -6), "sk-sluice-AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8");
  assertMatch(mintKey(), /^sk-sluice-[A-Za-z0-9_-]{43}[A-Za-z0-9]{6}$/);
  assertNotEquals(mintKey(), mintKey());
});

Deno.test("mintKey() ends in the CRC-32 of what comes before, in base 62", () => {
  // CRC-32 of the first 53 characters by zlib.
  let value = 0;
  for (const digit of FIXED.slice(-6)) {
    value = value * 62 + "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".indexOf(digit);
  }
  assertEquals(value, 2_670_629_992);
});

Deno.test("isIssued() refuses every key with one character changed, added or removed", () => {
  assert(isIssued(FIXED));
  for (let at = 0; at < FIXED.length; at++) {
    const other = FIXED[at] === "x" ? "y" : "x";
    assertEquals(isIssued(FIXED.slice(0, at) + other + FIXED.slice(at + 1)), false, `changed at ${at}`);
    assertEquals(isIssued(FIXED.slice(0, at) + FIXED.slice(at + 1)), false, `removed at ${at}`);
  }
  assertEquals(isIssued(`${FIXED}0`), false);
  assertEquals(isIssued(`${FIXED}\n`), false);
  assertEquals(isIssued(""), false);
});

Deno.test("the key ring finds keys of the store and of the configuration, until they are revoked", () => {
  const secret = "from-the-environment";
  const config = parseConfig({ keys: [{ name: "ci", key: { env: "CI" } }] }, () => secret);
  const store = openMemoryStore();
  const ring = createKeyRing({ config, store });
  const { key, record } = issueKey({ name: "one", group: "default", now: 5 });
  assertEquals(ring.find(key), undefined);
  store.addKey(record);
  assertEquals(ring.find(key), record);
  store.setDisabled(record.id, true);
  assertEquals(ring.find(key)?.disabled, true);
  store.revokeKey(record.id, 6);
  assertEquals(ring.find(key), undefined);
  assertEquals(ring.find(secret)?.id, "config:ci");
  assertEquals(ring.find(hashKey(secret)), undefined);
  assertEquals(ring.group("default")?.models, ["*"]);
  assertEquals(ring.group("constructor"), undefined);
});

Deno.test("the key ring asks the store only about keys that were issued, and a failing store is no wrong key", () => {
  const store: Store = {
    ...openMemoryStore(),
    findKeyByHash: () => {
      throw new Error("disk I/O error");
    },
  };
  const ring = createKeyRing({ config: parseConfig({}), store });
  assertEquals(ring.find("sk-sluice-nonsense"), undefined);
  const error = assertThrows(() => ring.find(mintKey()), GatewayError);
  assertEquals([error.status, error.message.includes("disk")], [503, false]);
  assertThrows(() => ring.check(), GatewayError, "key store");
  createKeyRing({ config: parseConfig({}), store: openMemoryStore() }).check();
});

Deno.test("issueKey() keeps nothing of the key but its hash", () => {
  const { key, record } = issueKey({ name: "one", group: "default", now: 5 });
  assert(isIssued(key));
  assertEquals(record.hash, hashKey(key));
  assert(!JSON.stringify(record).includes(key.slice(10, 20)));
});
