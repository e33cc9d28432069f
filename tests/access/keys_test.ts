import { assert, assertEquals, assertMatch, assertNotEquals, assertRejects } from "@std/assert";
import { createKeyRing, hashKey, isIssued, issueKey, mintKey } from "../../lib/access/keys.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { GatewayError } from "../../lib/errors.ts";
import { openMemoryStore } from "../../lib/store/memory.ts";
import type { KeyStore } from "../../lib/store/keys.ts";

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

Deno.test("the key ring finds keys of the store and of the configuration, until they are revoked", async () => {
  const secret = "from-the-environment";
  const config = parseConfig(
    { keys: [{ name: "ci", key: { env: "CI" }, models: ["acme/*"], budget: { usd: "5" } }] },
    () => secret,
  );
  const store = openMemoryStore().keys;
  const ring = createKeyRing({ config, store, now: () => 100 });
  const { key, record } = issueKey({ name: "one", group: "default", now: 5 });
  assertEquals(await ring.find(key), undefined);
  await store.add(record);
  assertEquals(await ring.find(key), record);
  await store.change(record.id, { disabled: true });
  assertEquals((await ring.find(key))?.disabled, true);
  await store.revoke(record.id, 6);
  assertEquals(await ring.find(key), undefined);
  const configured = await ring.find(secret);
  assertEquals([configured?.id, configured?.rules], [
    "config:ci",
    { models: ["acme/*"], budget: { usd: "5", period: "month" } },
  ]);
  assertEquals(await ring.find(hashKey(secret)), undefined);
  assertEquals(ring.group("default")?.models, ["*"]);
  assertEquals(ring.group("constructor"), undefined);
});

Deno.test("the key ring finds a rotated key by its former secret until the overlap is over", async () => {
  const store = openMemoryStore().keys;
  let now = 100;
  const ring = createKeyRing({ config: parseConfig({}), store, now: () => now });
  const [first, second] = [issueKey({ name: "one", group: "default", now: 5 }), mintKey()];
  await store.add(first.record);
  await store.rotate(first.record.id, { hash: hashKey(second), until: 200 });
  for (const secret of [first.key, second]) assertEquals((await ring.find(secret))?.id, first.record.id);
  now = 200;
  assertEquals([await ring.find(first.key), (await ring.find(second))?.id], [undefined, first.record.id]);
});

Deno.test("the key ring asks the store only about keys that were issued, and a failing store is no wrong key", async () => {
  const failing: KeyStore = {
    ...openMemoryStore().keys,
    findByHash: () => Promise.reject(new Error("disk I/O error")),
  };
  const ring = createKeyRing({ config: parseConfig({}), store: failing, now: () => 0 });
  assertEquals(await ring.find("sk-sluice-nonsense"), undefined);
  const error = await assertRejects(() => ring.find(mintKey()), GatewayError);
  assertEquals([error.status, error.message.includes("disk")], [503, false]);
  await assertRejects(() => ring.check(), GatewayError, "key store");
  await createKeyRing({ config: parseConfig({}), store: openMemoryStore().keys, now: () => 0 }).check();
});

Deno.test("issueKey() keeps nothing of the key but its hash", () => {
  const { key, record } = issueKey({ name: "one", group: "default", now: 5 });
  assert(isIssued(key));
  assertEquals(record.hash, hashKey(key));
  assert(!JSON.stringify(record).includes(key.slice(10, 20)));
  assertEquals(record, {
    id: record.id,
    name: "one",
    hash: hashKey(key),
    group: "default",
    createdAt: 5,
    disabled: false,
    rules: {},
  });
});

Deno.test("issueKey() keeps rules and expiry", () => {
  const more = { rules: { models: ["acme/*"] }, expiresAt: 9 };
  const { record } = issueKey({ name: "one", group: "default", now: 5, ...more });
  assertEquals([record.rules, record.expiresAt], [more.rules, more.expiresAt]);
});
