import { assert, assertEquals, assertThrows } from "@std/assert";
import { authenticate } from "../../lib/access/authenticate.ts";
import { createKeyRing, issueKey, mintKey } from "../../lib/access/keys.ts";
import type { Credential } from "../../lib/access/table.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { GatewayError } from "../../lib/errors.ts";
import { openMemoryStore } from "../../lib/store/memory.ts";

const BOTH: readonly Credential[] = ["bearer", "api_key"];

/** A ring with a key in every state. */
function world() {
  const store = openMemoryStore();
  const keys = createKeyRing({ config: parseConfig({ groups: { ops: { models: ["a/*"] } } }), store });
  const add = (name: string, group = "default") => {
    const { key, record } = issueKey({ name, group, now: 1 });
    store.addKey(record);
    return { key, id: record.id };
  };
  const [good, other, off, gone] = [add("good", "ops"), add("other"), add("off"), add("gone")];
  store.setDisabled(off.id, true);
  store.revokeKey(gone.id, 2);
  return { keys, good, other, off, gone, lost: add("lost", "removed-group") };
}

const { keys, good, other, off, gone, lost } = world();

function decide(headers: Headers, credential: Credential): string {
  try {
    return authenticate(headers, credential, keys).keyName;
  } catch (error) {
    assert(error instanceof GatewayError);
    return `${error.status} ${error.code ?? "-"}`;
  }
}

Deno.test("authenticate() tells who asks, with the rules of the group", () => {
  assertEquals(authenticate(new Headers({ authorization: `Bearer ${good.key}` }), "bearer", keys), {
    keyId: good.id,
    keyName: "good",
    groupName: "ops",
    group: { models: ["a/*"], endpoints: ["*"] },
  });
});

Deno.test("authenticate() decides by the state of the key, whichever header brings it", () => {
  const cases: [string, string][] = [
    [good.key, "good"],
    [off.key, "403 -"],
    [gone.key, "401 invalid_api_key"],
    [lost.key, "403 -"],
    [mintKey(), "401 invalid_api_key"],
    ["sk-sluice-short", "401 invalid_api_key"],
    [good.key.toUpperCase(), "401 invalid_api_key"],
    [`${good.key} ${good.key}`, "401 invalid_api_key"],
    [`${good.key}, ${good.key}`, "401 invalid_api_key"],
    ["x".repeat(100_000), "401 invalid_api_key"],
  ];
  for (const [key, decision] of cases) {
    assertEquals(decide(new Headers({ authorization: `Bearer ${key}` }), "bearer"), decision, `bearer ${key}`);
    assertEquals(decide(new Headers({ authorization: `bEARER ${key}` }), "api_key"), decision, `bearer, native ${key}`);
    assertEquals(decide(new Headers({ "x-api-key": key }), "api_key"), decision, `x-api-key ${key}`);
  }
});

Deno.test("authenticate() takes the headers of each family and no others", () => {
  const cases: [Record<string, string>, string, string][] = [
    // headers, decision under /v1, decision under /anthropic
    [{}, "401 -", "401 -"],
    [{ "x-api-key": good.key }, "401 -", "good"],
    [{ authorization: good.key }, "401 -", "401 -"],
    [{ authorization: `Basic ${good.key}` }, "401 -", "401 -"],
    [{ authorization: "Bearer" }, "401 -", "401 -"],
    [{ authorization: `Bearer  ${good.key}` }, "401 invalid_api_key", "401 invalid_api_key"],
    [{ authorization: `Bearer ${good.key}`, "x-api-key": good.key }, "good", "good"],
    [{ authorization: `Bearer ${good.key}`, "x-api-key": "" }, "good", "good"],
    [{ authorization: `Bearer ${good.key}`, "x-api-key": other.key }, "401 -", "other"],
    [{ authorization: `Bearer ${good.key}`, "x-api-key": "nonsense" }, "401 -", "401 invalid_api_key"],
    [{ authorization: "Bearer nonsense", "x-api-key": good.key }, "401 -", "good"],
    [{ authorization: `Bearer ${good.key}, Bearer ${other.key}` }, "401 invalid_api_key", "401 invalid_api_key"],
  ];
  for (const [headers, bearer, apiKey] of cases) {
    assertEquals(decide(new Headers(headers), "bearer"), bearer, `bearer ${JSON.stringify(headers)}`);
    assertEquals(decide(new Headers(headers), "api_key"), apiKey, `api_key ${JSON.stringify(headers)}`);
  }
});

Deno.test("authenticate() refuses headers that were sent twice", () => {
  for (const credential of BOTH) {
    const twice = new Headers();
    twice.append("authorization", `Bearer ${good.key}`);
    twice.append("authorization", `Bearer ${good.key}`);
    assertEquals(decide(twice, credential), "401 invalid_api_key");
    const keysTwice = new Headers({ authorization: `Bearer ${good.key}` });
    keysTwice.append("x-api-key", good.key);
    keysTwice.append("x-api-key", good.key);
    assertEquals(decide(keysTwice, credential).slice(0, 3), "401");
  }
});

Deno.test("authenticate() says how to send a key, and the same of every wrong one", () => {
  const message = (headers: HeadersInit, credential: Credential) =>
    assertThrows(() => authenticate(new Headers(headers), credential, keys), GatewayError);
  assertEquals(
    message({}, "bearer").message,
    'Missing API key: send it in the header "Authorization: Bearer <API_KEY>"',
  );
  assertEquals(
    message({}, "api_key").message,
    'Missing API key: send it in the header "x-api-key: <API_KEY>" or "Authorization: Bearer <API_KEY>"',
  );
  assertEquals(
    message({ "x-api-key": good.key }, "bearer").message,
    'Cannot take the API key from "x-api-key" here: send it in the header "Authorization: Bearer <API_KEY>"',
  );
  const wrong = [gone.key, mintKey(), "nonsense"].map((key) => message({ authorization: `Bearer ${key}` }, "bearer"));
  assertEquals(new Set(wrong.map((error) => error.message)).size, 1);
  for (const error of wrong) assertEquals(error.headers, { "www-authenticate": "Bearer" });
});
