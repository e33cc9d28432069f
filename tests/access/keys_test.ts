import { assert, assertEquals, assertMatch, assertNotEquals, assertRejects } from "@std/assert";
import { createKeyRing, hashKey, isIssued, issueKey, mintKey } from "../../lib/access/keys.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { GatewayError } from "../../lib/errors.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import type { KeyStore } from "../../lib/store/keys.ts";

const FIXED = mintKey(Uint8Array.from({ length: 32 }, (_, index) => index));

Deno.test("mintKey() returns a prefix, 256 random bits and a checksum", () => {
  assertEquals(FIXED.slice(0, -6), "sk-sluice-AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8");
  assertMatch(mintKey(), /^sk-sluice-[A-Za-z0-9_-]{43}[A-Za-z0-9]{6}$/);
  assertNotEquals(mintKey(), mintKey());
});

Deno.test("mintKey() appends the CRC-32 of the rest in base 62", () => {
  // CRC-32 of the first 53 characters by zlib.
  let value = 0;
  for (const digit of FIXED.slice(-6)) {
    value = value * 62 + "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".indexOf(digit);
  }
  assertEquals(value, 2_670_629_992);
});

Deno.test("isIssued() rejects a key with any character changed, added or removed", () => {
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

/** A store with a version, which counts reads of keys. */
function versioned(inner = openMemoryStore().keys) {
  const state = { version: 1, lookups: 0 };
  const store: KeyStore = {
    ...inner,
    version: () => state.version,
    findByHash: (hash, now) => (state.lookups++, inner.findByHash(hash, now)),
  };
  return { inner, store, state };
}

Deno.test("KeyRing reads each key, valid or wrong, once per store version", async () => {
  const { inner, store, state } = versioned();
  const ring = createKeyRing({ config: parseConfig({}), store, now: () => 100 });
  const [one, two] = ["one", "two"].map((name) => issueKey({ name, group: "default", now: 5 }));
  assert(one !== undefined && two !== undefined);
  for (const { record } of [one, two]) await inner.add(record);
  for (let times = 0; times < 3; times++) {
    assertEquals([await ring.find(one.key), await ring.find(two.key)], [one.record, two.record]);
  }
  assertEquals(state.lookups, 2);
  await inner.change(one.record.id, { disabled: true });
  state.version++;
  for (let times = 0; times < 2; times++) assertEquals((await ring.find(one.key))?.disabled, true);
  assertEquals(state.lookups, 3);
  await inner.revoke(one.record.id, 6);
  state.version++;
  const late = issueKey({ name: "late", group: "default", now: 5 });
  for (const secret of [one.key, one.key, late.key, late.key]) assertEquals(await ring.find(secret), undefined);
  assertEquals(state.lookups, 5);
  await inner.add(late.record);
  state.version++;
  assertEquals(await ring.find(late.key), late.record);
  assertEquals(state.lookups, 6);
  // Any number of wrong keys evicts no valid one.
  for (let times = 0; times < 1_500; times++) await ring.find(mintKey());
  assertEquals(await ring.find(late.key), late.record);
  assertEquals(state.lookups, 1_506);
  // A new configuration starts without cached keys of the old one.
  const admin = { hash: two.record.hash };
  assertEquals(await ring.renewed({ ...parseConfig({}), admin }).find(two.key), undefined);
});

Deno.test("KeyRing caches no key that changed during the read, and nothing without a store version", async () => {
  const { inner, store, state } = versioned();
  const { key, record } = issueKey({ name: "one", group: "default", now: 5 });
  await inner.add(record);
  const changing: KeyStore = {
    ...store,
    async findByHash(hash, now) {
      const found = await store.findByHash(hash, now);
      await inner.change(record.id, { disabled: true });
      state.version++;
      return found;
    },
  };
  const ring = createKeyRing({ config: parseConfig({}), store: changing, now: () => 0 });
  assertEquals([(await ring.find(key))?.disabled, (await ring.find(key))?.disabled], [false, true]);
  let isAway = false;
  const fails = () => {
    throw new Error("disk I/O error");
  };
  const failing: KeyStore = {
    ...store,
    version: () => isAway ? fails() : 1,
    findByHash: (hash, now) => isAway ? Promise.reject(new Error("disk I/O error")) : store.findByHash(hash, now),
  };
  const other = createKeyRing({ config: parseConfig({}), store: failing, now: () => 0 });
  assertEquals((await other.find(key))?.id, record.id);
  isAway = true;
  await assertRejects(async () => await other.find(key), GatewayError, "key store");
  isAway = false;
  assertEquals((await other.find(key))?.id, record.id);
});

Deno.test("KeyRing caches 10,000 keys, and wrong keys never evict valid ones", async () => {
  const { store, state } = versioned();
  const record = (id: string) => issueKey({ name: id, group: "default", now: 5 }).record;
  let isGood = true;
  const all: KeyStore = {
    ...store,
    findByHash: (hash) => (state.lookups++, Promise.resolve(isGood ? { ...record("any"), hash } : undefined)),
  };
  const ring = createKeyRing({ config: parseConfig({}), store: all, now: () => 0 });
  const secrets = Array.from({ length: 10_001 }, () => mintKey());
  for (const secret of secrets.slice(0, 10_000)) await ring.find(secret);
  isGood = false;
  for (let times = 0; times < 100; times++) assertEquals(await ring.find(mintKey()), undefined);
  isGood = true;
  const asks = async (at: number) => {
    const before = state.lookups;
    await ring.find(secrets[at] ?? "");
    return state.lookups - before;
  };
  assertEquals([await asks(0), await asks(9_999), await asks(10_000), await asks(1), await asks(0)], [0, 0, 1, 0, 1]);
});

Deno.test("KeyRing looks up only issued keys in the store, and reports a failing store as an error", async () => {
  const failing: KeyStore = {
    ...openMemoryStore().keys,
    findByHash: () => Promise.reject(new Error("disk I/O error")),
  };
  const ring = createKeyRing({ config: parseConfig({}), store: failing, now: () => 0 });
  assertEquals(await ring.find("sk-sluice-nonsense"), undefined);
  const error = await assertRejects(async () => await ring.find(mintKey()), GatewayError);
  assertEquals([error.status, error.retryAfterMs, error.message.includes("disk")], [503, 2_000, false]);
  await assertRejects(() => ring.check(), GatewayError, "key store");
  await createKeyRing({ config: parseConfig({}), store: openMemoryStore().keys, now: () => 0 }).check();
});

Deno.test("issueKey() stores only the hash of the key", () => {
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

Deno.test("issueKey() stores rules and expiry", () => {
  const more = { rules: { models: ["acme/*"] }, expiresAt: 9 };
  const { record } = issueKey({ name: "one", group: "default", now: 5, ...more });
  assertEquals([record.rules, record.expiresAt], [more.rules, more.expiresAt]);
});
