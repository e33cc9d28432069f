/** Behaviour of every store for keys. */
import { assertEquals } from "@std/assert";
import type { KeyPage, KeyRecord, KeyStore } from "../../lib/store/keys.ts";

/** A hash of 64 equal characters. */
export function hash(character: string): string {
  return character.repeat(64);
}

/** A key with usual members. */
export function key(change: Partial<KeyRecord> = {}): KeyRecord {
  return {
    id: "key_1",
    name: "ci",
    hash: hash("a"),
    group: "default",
    createdAt: 1000,
    disabled: false,
    rules: {},
    ...change,
  };
}

const RULES: KeyRecord["rules"] = {
  models: ["acme/*"],
  limits: { requests_per_minute: 5, report_only: false },
  budget: { usd: "0.000000000001", period: "week" },
};

const BEHAVIOURS: Record<string, (keys: KeyStore) => Promise<void>> = {
  "keeps a key and finds it by its hash": async (keys) => {
    assertEquals(await keys.add(key()), true);
    assertEquals(await keys.findByHash(hash("a"), 0), key());
    assertEquals(await keys.findByHash(hash("b"), 0), undefined);
    assertEquals(await keys.findByHash("' OR 1=1 --", 0), undefined);
    assertEquals(await keys.findByHash("", 0), undefined);
  },
  "keeps every member of a key": async (keys) => {
    const whole = key({
      disabled: true,
      revokedAt: 2000,
      expiresAt: 3000,
      lastUsedAt: 60_000,
      rules: RULES,
      former: { hash: hash("f"), until: 4000 },
    });
    await keys.add(whole);
    assertEquals(await keys.list(), [whole]);
  },
  "refuses a name in use, and an id or hash that was ever used": async (keys) => {
    await keys.add(key({ former: { hash: hash("f"), until: 1 } }));
    const other = key({ id: "key_2", name: "two", hash: hash("b") });
    assertEquals(await keys.add({ ...other, name: "ci" }), false);
    assertEquals(await keys.add({ ...other, id: "key_1" }), false);
    assertEquals(await keys.add({ ...other, hash: hash("a") }), false);
    assertEquals(await keys.add({ ...other, hash: hash("f") }), false);
    assertEquals(await keys.add({ ...other, former: { hash: hash("a"), until: 1 } }), false);
    assertEquals(await keys.add({ ...other, former: { hash: hash("f"), until: 1 } }), false);
    assertEquals((await keys.list()).length, 1);
    assertEquals(await keys.add(other), true);
  },
  "tells how many keys there are, and the oldest ones in use": async (keys) => {
    assertEquals(await keys.summary(2), { total: 0, inUse: 0, oldest: [] });
    const made = [..."abcd"].map((character) =>
      key({ id: `key_${character}`, name: character, hash: hash(character), rules: RULES })
    );
    for (const one of made) await keys.add(one);
    await keys.revoke("key_a", 2000);
    await keys.change("key_c", { disabled: true });
    const [, b = key(), c = key(), d = key()] = made;
    const inUse = [b, { ...c, disabled: true }, d];
    assertEquals(await keys.summary(2), { total: 4, inUse: 3, oldest: inUse.slice(0, 2) });
    assertEquals(await keys.summary(9), { total: 4, inUse: 3, oldest: inUse });
    assertEquals(await keys.summary(0), { total: 4, inUse: 3, oldest: [] });
    for (const { id } of inUse) await keys.revoke(id, 3000);
    assertEquals(await keys.summary(9), { total: 4, inUse: 0, oldest: [] });
  },
  "lists keys in the order they were added": async (keys) => {
    const added = ["c", "a", "b"].map((letter) => key({ id: letter, name: letter, hash: hash(letter) }));
    for (const each of added) await keys.add(each);
    assertEquals(await keys.list(), added);
  },
  "gives keys page by page, those that were added meanwhile too": async (keys) => {
    assertEquals(await keys.page({ after: 0, limit: 2 }), { keys: [] });
    const added = [..."edcba"].map((letter) => key({ id: letter, name: letter, hash: hash(letter), rules: RULES }));
    for (const each of added) await keys.add(each);
    await keys.revoke("d", 2000);
    const found: KeyRecord[] = [];
    for (let after: number | undefined = 0; after !== undefined;) {
      const page: KeyPage = await keys.page({ after, limit: 2 });
      if (after === 0) await keys.add(key({ id: "f", name: "f", hash: hash("f") }));
      found.push(...page.keys);
      after = page.next;
    }
    assertEquals(found.map(({ id }) => id), [..."edcbaf"]);
    assertEquals(found, await keys.list());
  },
  "finds a key by its id, then by the name in use, then by the last that had it": async (keys) => {
    const ids = async (...names: string[]) => await Promise.all(names.map(async (name) => (await keys.find(name))?.id));
    assertEquals(await ids("ci", "", "\0", "\ud800"), [undefined, undefined, undefined, undefined]);
    await keys.add(key({ id: "one" }));
    await keys.revoke("one", 2000);
    await keys.add(key({ id: "two", hash: hash("b") }));
    assertEquals(await ids("ci", "one", "two", "CI"), ["two", "one", "two", undefined]);
    await keys.revoke("two", 2000);
    assertEquals(await ids("ci"), ["two"]);
    await keys.add(key({ id: "three", name: "one", hash: hash("c") }));
    assertEquals(await ids("one", "three"), ["one", "three"]);
    assertEquals(await keys.find("three"), key({ id: "three", name: "one", hash: hash("c") }));
  },
  "finds keys by their ids, ended ones too": async (keys) => {
    for (const letter of "abc") await keys.add(key({ id: letter, name: `name ${letter}`, hash: hash(letter) }));
    await keys.revoke("b", 2000);
    assertEquals(await keys.findIds([]), []);
    const found = await keys.findIds(["b", "nobody", "a", "a"]);
    assertEquals(new Map(found.map(({ id, revokedAt }) => [id, revokedAt])), new Map([["a", undefined], ["b", 2000]]));
    assertEquals(found.length, 2);
  },
  "disables and enables a key": async (keys) => {
    await keys.add(key());
    assertEquals(await keys.change("key_1", { disabled: true }), true);
    assertEquals((await keys.findByHash(hash("a"), 0))?.disabled, true);
    assertEquals(await keys.change("key_1", { disabled: false }), true);
    assertEquals((await keys.findByHash(hash("a"), 0))?.disabled, false);
    assertEquals(await keys.change("key_9", { disabled: true }), false);
  },
  "changes what is named and nothing else": async (keys) => {
    const bystander = key({ id: "key_2", name: "two", hash: hash("b") });
    await keys.add(key({ disabled: true }));
    await keys.add(bystander);
    const changes = [{}, { group: "ops" }, { rules: RULES }, { expiresAt: 0 }, { expiresAt: 5000 }, {
      disabled: false,
    }];
    let expected = key({ disabled: true });
    for (const change of changes) {
      assertEquals(await keys.change("key_1", change), true);
      expected = { ...expected, ...change };
      assertEquals(await keys.list(), [expected, bystander]);
    }
    await keys.change("key_1", { expiresAt: null, rules: {} });
    assertEquals(await keys.list(), [key({ group: "ops" }), bystander]);
  },
  "changes no key that is not as its author has seen it": async (keys) => {
    const { group, rules, expiresAt } = key({ rules: RULES, expiresAt: 5000 });
    const seen = { group, rules, ...(expiresAt !== undefined && { expiresAt }) };
    await keys.add(key({ rules: RULES, expiresAt: 5000 }));
    for (const other of [{ group: "ops" }, { rules: {} }, { expiresAt: 6000 }]) {
      assertEquals(await keys.change("key_1", { disabled: true, seen: { ...seen, ...other } }), false);
    }
    const { expiresAt: _, ...unlimited } = seen;
    assertEquals(await keys.change("key_1", { disabled: true, seen: unlimited }), false);
    assertEquals(await keys.list(), [key({ rules: RULES, expiresAt: 5000 })]);
    assertEquals(await keys.change("key_1", { group: "ops", expiresAt: null, seen }), true);
    assertEquals(await keys.change("key_1", { disabled: true, seen: { ...unlimited, group: "ops" } }), true);
    assertEquals(await keys.list(), [key({ rules: RULES, group: "ops", disabled: true })]);
  },
  "keeps a revoked key, which cannot come back": async (keys) => {
    await keys.add(key());
    assertEquals(await keys.revoke("key_1", 2000), true);
    assertEquals(await keys.revoke("key_1", 3000), false);
    assertEquals(await keys.change("key_1", { disabled: false, group: "ops" }), false);
    assertEquals(await keys.rotate("key_1", { hash: hash("b"), until: 9000 }), false);
    assertEquals(await keys.revoke("key_9", 2000), false);
    assertEquals(await keys.list(), [key({ revokedAt: 2000 })]);
    assertEquals(await keys.findByHash(hash("a"), 0), key({ revokedAt: 2000 }));
  },
  "frees the name of a revoked key, but not its hash": async (keys) => {
    await keys.add(key());
    await keys.revoke("key_1", 2000);
    assertEquals(await keys.add(key({ id: "key_2" })), false);
    assertEquals(await keys.add(key({ id: "key_2", hash: hash("b") })), true);
  },
  "finds a rotated key by both hashes until the overlap is over": async (keys) => {
    await keys.add(key());
    assertEquals(await keys.rotate("key_1", { hash: hash("b"), until: 5000 }), true);
    const rotated = key({ hash: hash("b"), former: { hash: hash("a"), until: 5000 } });
    assertEquals(await keys.findByHash(hash("b"), 9000), rotated);
    assertEquals(await keys.findByHash(hash("a"), 4999), rotated);
    assertEquals(await keys.findByHash(hash("a"), 5000), undefined);
    assertEquals(await keys.list(), [rotated]);
  },
  "ends an older former key at the next rotation": async (keys) => {
    await keys.add(key());
    await keys.rotate("key_1", { hash: hash("b"), until: 5000 });
    await keys.rotate("key_1", { hash: hash("c"), until: 6000, from: hash("b") });
    const found = await Promise.all(["a", "b", "c"].map((letter) => keys.findByHash(hash(letter), 0)));
    assertEquals(found.map((key) => key?.id), [undefined, "key_1", "key_1"]);
  },
  "rotates to no hash that is known": async (keys) => {
    await keys.add(key({ former: { hash: hash("f"), until: 1 } }));
    await keys.add(key({ id: "key_2", name: "two", hash: hash("b"), former: { hash: hash("e"), until: 1 } }));
    const before = await keys.list();
    for (const letter of ["a", "b", "e", "f"]) {
      assertEquals(await keys.rotate("key_1", { hash: hash(letter), until: 5000 }), false, letter);
    }
    assertEquals(await keys.rotate("key_9", { hash: hash("c"), until: 5000 }), false);
    assertEquals(await keys.rotate("key_1", { hash: hash("c"), until: 5000, from: hash("d") }), false);
    assertEquals(await keys.list(), before);
  },
  "ends the former key together with the key": async (keys) => {
    await keys.add(key());
    await keys.rotate("key_1", { hash: hash("b"), until: 5000 });
    await keys.revoke("key_1", 2000);
    assertEquals(await keys.findByHash(hash("a"), 2000), undefined);
    assertEquals(await keys.list(), [key({ hash: hash("b"), revokedAt: 2000 })]);
  },
  "notes when keys were last used; later times win": async (keys) => {
    const all = ["a", "b"].map((letter) => key({ id: letter, name: letter, hash: hash(letter) }));
    for (const each of all) await keys.add(each);
    await keys.touch(new Map([["a", 60_000], ["nobody", 60_000]]));
    assertEquals((await keys.list()).map(({ lastUsedAt }) => lastUsedAt), [60_000, undefined]);
    await keys.touch(new Map([["a", 0], ["b", 120_000]]));
    assertEquals((await keys.list()).map(({ lastUsedAt }) => lastUsedAt), [60_000, 120_000]);
    await keys.touch(new Map());
    await keys.touch(new Map([["a", 180_000]]));
    assertEquals((await keys.findByHash(hash("a"), 0))?.lastUsedAt, 180_000);
  },
  "hands out copies, and keeps one": async (keys) => {
    const given = key({ rules: { models: ["acme/*"] }, former: { hash: hash("f"), until: 5000 } });
    const kept = structuredClone(given);
    await keys.add(given);
    given.rules.models?.push("*");
    for (const found of [...await keys.list(), await keys.findByHash(hash("a"), 0)]) {
      found?.rules.models?.push("*");
      if (found?.former !== undefined) found.former.until = 9000;
    }
    assertEquals(await keys.list(), [kept]);
    const rules = { models: ["acme/one"] };
    await keys.change("key_1", { rules });
    rules.models.push("*");
    assertEquals((await keys.list())[0]?.rules, { models: ["acme/one"] });
  },
  "gives a name to one of two who want it at once": async (keys) => {
    const wishes = ["a", "b"].map((letter) => keys.add(key({ id: letter, hash: hash(letter) })));
    assertEquals((await Promise.all(wishes)).toSorted(), [false, true]);
  },
};

/** Tests a kind of store. `open` passes an empty one to the test and removes it afterwards. */
export function testKeys(name: string, open: (test: (keys: KeyStore) => Promise<void>) => Promise<void>): void {
  for (const [claim, behaviour] of Object.entries(BEHAVIOURS)) {
    Deno.test(`${name} ${claim}`, () => open(behaviour));
  }
}
