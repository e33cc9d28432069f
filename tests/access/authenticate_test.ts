import { assert, assertEquals, assertRejects } from "@std/assert";
import { authenticate } from "../../lib/access/authenticate.ts";
import { createKeyRing, issueKey, type KeyRing, mintKey } from "../../lib/access/keys.ts";
import type { Credential } from "../../lib/access/access_table.ts";
import { groupSchema, type KeyRules } from "../../lib/config.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { GatewayError } from "../../lib/errors.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";

const BOTH: readonly Credential[] = ["bearer", "api_key"];
const NOW = 1_000_000;

/** A ring with a key in every state. */
async function world() {
  const store = openMemoryStore();
  const config = parseConfig({
    groups: { ops: { models: ["a/*"] }, office: { ips: ["10.0.0.0/8", "2001:db8::/32"] } },
  });
  const keys = createKeyRing({ config, store: store.keys, now: () => NOW });
  const add = async (name: string, group = "default", more: { rules?: KeyRules; expiresAt?: number } = {}) => {
    const { key, record } = issueKey({ name, group, now: 1, ...more });
    await store.keys.add(record);
    return { key, id: record.id };
  };
  const [good, other, off, gone] = [await add("good", "ops"), await add("other"), await add("off"), await add("gone")];
  await store.keys.change(off.id, { disabled: true });
  await store.keys.revoke(gone.id, 2);
  return {
    store,
    keys,
    good,
    other,
    off,
    gone,
    lost: await add("lost", "removed-group"),
    office: await add("office", "office"),
    desk: await add("desk", "office", { rules: { ips: ["10.1.0.0/16"] } }),
    home: await add("home", "default", { rules: { ips: ["192.0.2.1"] } }),
    old: await add("old", "default", { expiresAt: NOW }),
    fresh: await add("fresh", "default", { expiresAt: NOW + 1 }),
  };
}

const { store, keys, good, other, off, gone, lost, office, desk, home, old, fresh } = await world();

async function ask(headers: HeadersInit, credential: Credential, address?: () => string | undefined) {
  const from = address ?? (() => {
    throw new Error("nobody needs the address");
  });
  return await authenticate(new Headers(headers), { credential, keys, address: from });
}

async function decide(headers: HeadersInit, credential: Credential, from?: string): Promise<string> {
  try {
    return (await ask(headers, credential, from === undefined ? undefined : () => from || undefined)).keyName;
  } catch (error) {
    assert(error instanceof GatewayError, String(error));
    return `${error.status} ${error.code ?? "-"}`;
  }
}

Deno.test("authenticate() returns the caller with the rules of its group and key", async () => {
  assertEquals(await ask({ authorization: `Bearer ${good.key}` }, "bearer"), {
    keyId: good.id,
    keyName: "good",
    groupName: "ops",
    group: groupSchema.parse({ models: ["a/*"] }),
    rules: {},
  });
  const caller = await ask({ authorization: `Bearer ${home.key}` }, "bearer", () => "192.0.2.1");
  assertEquals(caller.rules, { ips: ["192.0.2.1"] });
});

Deno.test("authenticate() decides by the state of the key, in either header", async () => {
  const cases: [string, string][] = [
    [good.key, "good"],
    [off.key, "403 -"],
    [gone.key, "401 invalid_api_key"],
    [lost.key, "403 -"],
    [old.key, "401 invalid_api_key"],
    [fresh.key, "fresh"],
    [mintKey(), "401 invalid_api_key"],
    ["sk-sluice-short", "401 invalid_api_key"],
    [good.key.toUpperCase(), "401 invalid_api_key"],
    [`${good.key} ${good.key}`, "401 invalid_api_key"],
    [`${good.key}, ${good.key}`, "401 invalid_api_key"],
    ["x".repeat(100_000), "401 invalid_api_key"],
  ];
  for (const [key, decision] of cases) {
    assertEquals(await decide({ authorization: `Bearer ${key}` }, "bearer"), decision, `bearer ${key}`);
    assertEquals(await decide({ authorization: `bEARER ${key}` }, "api_key"), decision, `bearer, native ${key}`);
    assertEquals(await decide({ "x-api-key": key }, "api_key"), decision, `x-api-key ${key}`);
  }
});

Deno.test("authenticate() accepts a key only from addresses that its group and the key allow", async () => {
  const cases: [string, string, string][] = [
    // Key, address and expected decision; an empty address means an unknown one.
    [office.key, "10.9.9.9", "office"],
    [office.key, "2001:db8::7", "office"],
    [office.key, "::ffff:10.9.9.9", "office"],
    [office.key, "192.0.2.1", "403 -"],
    [office.key, "", "403 -"],
    [desk.key, "10.1.2.3", "desk"],
    [desk.key, "10.2.2.3", "403 -"],
    [desk.key, "2001:db8::7", "403 -"],
    [home.key, "192.0.2.1", "home"],
    [home.key, "192.0.2.2", "403 -"],
    [home.key, "", "403 -"],
  ];
  for (const [key, address, decision] of cases) {
    assertEquals(await decide({ "x-api-key": key }, "api_key", address), decision, `${decision} from ${address}`);
  }
});

Deno.test("authenticate() reports an expired key as expired, even if it is disabled", async () => {
  const message = async () =>
    (await assertRejects(() => ask({ "x-api-key": old.key }, "api_key"), GatewayError)).message;
  assertEquals(await message(), "The API key has expired");
  await store.keys.change(old.id, { disabled: true });
  assertEquals(await message(), "The API key has expired");
});

Deno.test("authenticate() records the use of accepted keys, to the minute, and flush() writes it once", async () => {
  const touched: Map<string, number>[] = [];
  let now = 600_000;
  let fail: (() => Promise<void>) | undefined;
  const ring: KeyRing = createKeyRing({
    config: parseConfig(
      { groups: { ops: {} }, keys: [{ name: "ci", key: { env: "CI" } }] },
      () => "from-the-environment",
    ),
    store: {
      ...store.keys,
      touch: async (used) => {
        await fail?.();
        touched.push(new Map(used));
      },
    },
    now: () => now,
  });
  const use = async (key: string) =>
    await authenticate(new Headers({ "x-api-key": key }), {
      credential: "api_key",
      keys: ring,
      address: () => "192.0.2.9",
    });
  await ring.flush();
  for (const { key } of [other, good]) await use(key);
  await use("from-the-environment");
  for (const { key } of [off, gone, home]) await assertRejects(() => use(key), GatewayError);
  now += 59_999;
  for (let times = 0; times < 2; times++) await use(fresh.key);
  fail = async () => {
    now += 1;
    // While the store is busy with failing, a key is used again.
    await use(other.key);
    throw new Error("disk I/O error");
  };
  await assertRejects(() => ring.flush(), Error, "disk");
  fail = undefined;
  assertEquals(touched, []);
  await ring.flush();
  await ring.flush();
  assertEquals(touched, [new Map([[other.id, 660_000], [good.id, 600_000], [fresh.id, 600_000]])]);
});

Deno.test("authenticate() reads only the headers of the credential kind", async () => {
  const cases: [Record<string, string>, string, string][] = [
    // headers, decision under /v1, decision under /anthropic
    [{}, "401 -", "401 -"],
    [{ "x-api-key": good.key }, "401 -", "good"],
    [{ authorization: good.key }, "401 -", "401 -"],
    [{ authorization: `Basic ${good.key}` }, "401 -", "401 -"],
    [{ authorization: "Bearer" }, "401 -", "401 -"],
    [{ authorization: `Bearer  ${good.key}` }, "good", "good"],
    [{ authorization: `Bearer\t${good.key}` }, "401 -", "401 -"],
    [{ authorization: `Bearer   ${good.key} x` }, "401 invalid_api_key", "401 invalid_api_key"],
    [{ authorization: `Bearer ${good.key}`, "x-api-key": good.key }, "good", "good"],
    [{ authorization: `Bearer ${good.key}`, "x-api-key": "" }, "good", "good"],
    [{ authorization: `Bearer ${good.key}`, "x-api-key": other.key }, "good", "other"],
    [{ authorization: `Bearer ${good.key}`, "x-api-key": "nonsense" }, "good", "401 invalid_api_key"],
    [{ authorization: "Bearer nonsense", "x-api-key": good.key }, "401 invalid_api_key", "good"],
    [{ authorization: `Bearer ${good.key}, Bearer ${other.key}` }, "401 invalid_api_key", "401 invalid_api_key"],
  ];
  for (const [headers, bearer, apiKey] of cases) {
    assertEquals(await decide(headers, "bearer"), bearer, `bearer ${JSON.stringify(headers)}`);
    assertEquals(await decide(headers, "api_key"), apiKey, `api_key ${JSON.stringify(headers)}`);
  }
});

Deno.test("authenticate() rejects repeated headers", async () => {
  for (const credential of BOTH) {
    const twice = new Headers();
    twice.append("authorization", `Bearer ${good.key}`);
    twice.append("authorization", `Bearer ${good.key}`);
    assertEquals(await decide(twice, credential), "401 invalid_api_key");
    const keysTwice = new Headers({ authorization: `Bearer ${good.key}` });
    keysTwice.append("x-api-key", good.key);
    keysTwice.append("x-api-key", good.key);
    assertEquals(await decide(keysTwice, credential), credential === "bearer" ? "good" : "401 invalid_api_key");
  }
});

Deno.test("authenticate() explains how to send a key, and gives every wrong key the same error", async () => {
  const message = (headers: HeadersInit, credential: Credential) =>
    assertRejects(() => ask(headers, credential), GatewayError);
  assertEquals(
    (await message({}, "bearer")).message,
    'Missing API key: send it in the header "Authorization: Bearer <API_KEY>"',
  );
  assertEquals(
    (await message({}, "api_key")).message,
    'Missing API key: send it in the header "x-api-key: <API_KEY>" or "Authorization: Bearer <API_KEY>"',
  );
  assertEquals(
    (await message({ "x-api-key": good.key }, "bearer")).message,
    'The API key cannot be sent in "x-api-key" here: send it in the header "Authorization: Bearer <API_KEY>"',
  );
  const wrong = await Promise.all(
    [gone.key, mintKey(), "nonsense"].map((key) => message({ authorization: `Bearer ${key}` }, "bearer")),
  );
  assertEquals(new Set(wrong.map((error) => error.message)).size, 1);
  for (const error of wrong) assertEquals(error.headers, { "www-authenticate": "Bearer" });
});
