import { assert, assertEquals, assertRejects } from "@std/assert";
import {
  changeKey,
  createKey,
  findKey,
  type KeyAdmin,
  publicKey,
  revokeKey,
  rotateKey,
} from "../../lib/access/key_admin.ts";
import { createKeyRing, isIssued } from "../../lib/access/keys.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { GatewayError } from "../../lib/errors.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";

const NOW = 1_000_000;

function open(): KeyAdmin & { clock: { now: number } } {
  const config = parseConfig(
    { groups: { ops: {} }, keys: [{ name: "env", key: { env: "K" } }] },
    () => "from-the-environment",
  );
  const clock = { now: NOW };
  return { config, store: openMemoryStore(), now: () => clock.now, origin: { author: "admin_key", at: NOW }, clock };
}

async function refusal(act: () => Promise<unknown>): Promise<[kind: string, param: string | undefined, text: string]> {
  const error = await assertRejects(act, GatewayError);
  return [error.kind, error.param, error.message];
}

Deno.test("createKey() stores complete rules and returns a working key", async () => {
  const admin = open();
  const { key, record } = await createKey(admin, {
    name: "ci",
    group: "ops",
    rules: { budget: { usd: "5" }, limits: { requests_per_minute: 3 } },
    expiresAt: NOW + 1,
  });
  assert(isIssued(key));
  assertEquals(await findKey(admin, "ci"), record);
  assertEquals(record.rules, {
    budget: { usd: "5", period: "month" },
    limits: { requests_per_minute: 3, report_only: false },
  });
  const ring = createKeyRing({ config: admin.config, store: admin.store.keys, now: admin.now });
  assertEquals(await ring.find(key), record);
});

Deno.test("createKey() rejects invalid input and names the member", async () => {
  const admin = open();
  await createKey(admin, { name: "taken", group: "default" });
  const cases: [Parameters<typeof createKey>[1], string, string][] = [
    [{ name: "a b", group: "ops" }, "name", 'Cannot add a key "a b": Expected a name of letters'],
    [{ name: "", group: "ops" }, "name", 'Cannot add a key "": Expected a name'],
    [{ name: "x".repeat(65), group: "ops" }, "name", "Cannot add a key"],
    [{ name: "env", group: "ops" }, "name", 'Cannot add a key "env": the configuration has a key with this name'],
    [{ name: "taken", group: "ops" }, "name", 'Cannot add a key "taken": another key has this name'],
    [{ name: "x", group: "nobody" }, "group", 'Cannot add a key "x": unknown group "nobody"; known: ops, default'],
    [{ name: "x", group: "constructor" }, "group", 'Cannot add a key "x": unknown group'],
    [
      { name: "x", group: "ops", expiresAt: NOW },
      "expires_at",
      'Cannot add a key "x": its expiry must be in the future',
    ],
    [{ name: "x", group: "ops", expiresAt: Infinity }, "expires_at", "its expiry"],
    [{ name: "x", group: "ops", expiresAt: NaN }, "expires_at", "its expiry"],
    [
      { name: "x", group: "ops", rules: { modles: [] } },
      "rules",
      "modles: Unknown member; expected one of: models, endpoints",
    ],
    [{ name: "x", group: "ops", rules: { models: ["a", "a b"] } }, "rules.models[1]", "models[1]: Expected a model id"],
    [{ name: "x", group: "ops", rules: { ips: ["10.0.0.0/33"] } }, "rules.ips[0]", "ips[0]: Expected an IP address"],
    [{ name: "x", group: "ops", rules: { budget: { usd: "-1" } } }, "rules.budget.usd", "budget.usd: Expected USD"],
    [
      { name: "x", group: "ops", rules: { limits: { requests_per_minute: 0 } } },
      "rules.limits.requests_per_minute",
      "limits.requests_per_minute: Expected at least 1",
    ],
    [{ name: "x", group: "ops", rules: null }, "rules", "Expected an object"],
    [{ name: "x", group: "ops", rules: "*" }, "rules", "Expected an object"],
  ];
  for (const [wish, param, words] of cases) {
    const [kind, at, text] = await refusal(() => createKey(admin, wish));
    assertEquals([kind, at, text.includes(words)], ["invalid", param, true], text);
  }
  assertEquals((await admin.store.keys.list()).length, 1);
});

Deno.test("changeKey() changes only the given members, by name or id", async () => {
  const admin = open();
  const { record } = await createKey(admin, { name: "ci", group: "ops", rules: { models: ["a/*"] } });
  assertEquals(await changeKey(admin, "ci", { disabled: true }), { ...record, disabled: true });
  const changed = await changeKey(admin, record.id, {
    disabled: false,
    group: "default",
    expiresAt: NOW + 5,
    rules: {},
  });
  assertEquals(changed, { ...record, group: "default", expiresAt: NOW + 5, rules: {} });
  assertEquals((await changeKey(admin, "ci", { expiresAt: null })).expiresAt, undefined);
  assertEquals(await refusal(() => changeKey(admin, "ci", { expiresAt: 5 })), [
    "invalid",
    "expires_at",
    'Cannot change key "ci": its expiry must be in the future',
  ]);
  assertEquals((await refusal(() => changeKey(admin, "ci", { group: "nobody" })))[1], "group");
  assertEquals((await refusal(() => changeKey(admin, "ci", { rules: { models: "a" } })))[1], "rules.models");
});

Deno.test("missing, revoked and configured keys cannot be changed", async () => {
  const admin = open();
  const { record } = await createKey(admin, { name: "ci", group: "ops" });
  assertEquals((await revokeKey(admin, "ci")).revokedAt, NOW);
  const acts: [string, (name: string) => Promise<unknown>][] = [
    ["change", (name) => changeKey(admin, name, { group: "ops" })],
    ["disable", (name) => changeKey(admin, name, { disabled: true })],
    ["enable", (name) => changeKey(admin, name, { disabled: false })],
    ["rotate", (name) => rotateKey(admin, name, { overlapMs: 0 })],
    ["revoke", (name) => revokeKey(admin, name)],
  ];
  const cases: [string, string, string][] = [
    ["ci", "invalid", "it is revoked"],
    [record.id, "invalid", "it is revoked"],
    ["env", "invalid", "it comes from the configuration"],
    ["config:env", "invalid", "it comes from the configuration"],
    ["nobody", "not_found", "there is no key with this name or id"],
  ];
  for (const [verb, act] of acts) {
    for (const [name, kind, why] of cases) {
      assertEquals(await refusal(() => act(name)), [kind, undefined, `Cannot ${verb} key "${name}": ${why}`]);
    }
  }
  for (const [name, , why] of cases.slice(2)) {
    assertEquals(await refusal(() => findKey(admin, name)), [
      "not_found",
      undefined,
      `Cannot find key "${name}": ${why}`,
    ]);
  }
});

Deno.test("findKey() prefers the id, then the active key, then the last key with that name", async () => {
  const admin = open();
  const first = (await createKey(admin, { name: "ci", group: "ops" })).record;
  await revokeKey(admin, "ci");
  const second = (await createKey(admin, { name: "ci", group: "ops" })).record;
  assertEquals((await findKey(admin, "ci")).id, second.id);
  assertEquals((await findKey(admin, first.id)).id, first.id);
  await revokeKey(admin, "ci");
  assertEquals((await findKey(admin, "ci")).id, second.id);
  const shadow = (await createKey(admin, { name: second.id, group: "ops" })).record;
  assertEquals((await findKey(admin, second.id)).id, second.id);
  assertEquals((await findKey(admin, shadow.id)).id, shadow.id);
});

Deno.test("rotateKey() returns a new secret, and the old one expires after the overlap", async () => {
  const admin = open();
  const { key: old, record } = await createKey(admin, { name: "ci", group: "ops", expiresAt: NOW + 1000 });
  const ring = createKeyRing({ config: admin.config, store: admin.store.keys, now: admin.now });
  const { key, record: rotated } = await rotateKey(admin, "ci", { overlapMs: 10 });
  assertEquals([rotated.id, rotated.group, rotated.former?.until], [record.id, "ops", NOW + 10]);
  const ids = async (...secrets: string[]) => await Promise.all(secrets.map(async (key) => (await ring.find(key))?.id));
  assertEquals(await ids(old, key), [record.id, record.id]);
  admin.clock.now += 10;
  assertEquals(await ids(old, key), [undefined, record.id]);
  const most = 90 * 86_400_000;
  assertEquals((await rotateKey(admin, "ci", { overlapMs: most })).record.former?.until, NOW + 10 + most);
  const last = await rotateKey(admin, record.id, { overlapMs: 0 });
  assertEquals(await ids(old, key, last.key), [undefined, undefined, record.id]);
  // Of two concurrent rotations the second fails: it would invalidate the secret that the first has shown.
  const together = await Promise.allSettled([1, 2].map(() => rotateKey(admin, "ci", { overlapMs: 5 })));
  assertEquals(together.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  const seen = (await findKey(admin, "ci")).hash;
  await rotateKey(admin, "ci", { overlapMs: 5 });
  assertEquals((await refusal(() => rotateKey(admin, "ci", { overlapMs: 5, seen })))[0], "invalid");
  for (const overlapMs of [-1, 0.5, NaN, most + 1]) {
    assertEquals((await refusal(() => rotateKey(admin, "ci", { overlapMs })))[1], "overlap");
  }
  admin.clock.now = NOW + 1000;
  assertEquals((await refusal(() => rotateKey(admin, "ci", { overlapMs: 0 })))[0], "invalid");
});

Deno.test("publicKey() contains everything except the hashes", async () => {
  const admin = open();
  const { record } = await createKey(admin, {
    name: "ci",
    group: "ops",
    rules: { models: ["a/*"] },
    expiresAt: NOW + 1000,
  });
  await admin.store.keys.touch(new Map([[record.id, 60_000]]));
  await rotateKey(admin, "ci", { overlapMs: 10 });
  const found = await findKey(admin, "ci");
  const shown = publicKey(found, NOW);
  assertEquals(shown, {
    id: record.id,
    name: "ci",
    group: "ops",
    state: "active",
    created_at: "1970-01-01T00:16:40.000Z",
    expires_at: "1970-01-01T00:16:41.000Z",
    last_used_at: "1970-01-01T00:01:00.000Z",
    revoked_at: null,
    rules: { models: ["a/*"] },
    former_until: "1970-01-01T00:16:40.010Z",
  });
  for (const hash of [found.hash, found.former?.hash ?? ""]) assert(!JSON.stringify(shown).includes(hash));
  assertEquals(publicKey(found, NOW + 10).former_until, null);
  const states = [
    publicKey({ ...found, disabled: true }, NOW),
    publicKey({ ...found, disabled: true }, NOW + 1000),
    publicKey({ ...found, revokedAt: 5 }, NOW + 1000),
  ];
  assertEquals(states.map(({ state }) => state), ["disabled", "expired", "revoked"]);
});
