import { assert, assertEquals, assertMatch, assertNotEquals, assertStringIncludes } from "@std/assert";
import { hashKey } from "../../lib/access/keys.ts";
import type { Json, JsonObject } from "../../lib/json/mod.ts";
import { ask, errorOf, startAdmin, statusOf } from "./admin_client.ts";
import { KEY_STATES } from "../support/keyed_gateway.ts";

const DAY_MS = 86_400_000;

Deno.test("each step in the life of a key takes effect at the client's next request", async () => {
  await using gateway = startAdmin();
  const made = await ask(gateway, "POST /keys", { name: "ci" });
  assertEquals([made.status, made.body.name, made.body.group, made.body.state], [201, "ci", "default", "active"]);
  const { key: first, id } = made.body;
  assertMatch(String(first), /^sk-sluice-/);
  assertEquals(await statusOf(gateway, first), 200);

  const steps: [name: string, body: Json | undefined, status: number][] = [
    ["PATCH /keys/ci", { disabled: true }, 403],
    ["PATCH /keys/ci", { disabled: false }, 200],
    ["PATCH /keys/ci", { group: "poor" }, 403],
    [`PATCH /keys/${id}`, { group: "default" }, 200],
    ["PATCH /keys/ci", { rules: { endpoints: ["chat"] } }, 403],
    ["PATCH /keys/ci", { rules: {} }, 200],
    ["PATCH /keys/ci", { rules: { ips: ["10.9.8.0/24"] } }, 403],
    ["PATCH /keys/ci", { rules: {}, expires_at: "30d" }, 200],
    ["PATCH /keys/ci", { expires_at: null }, 200],
  ];
  for (const [name, body, status] of steps) {
    const answer = await ask(gateway, name, body);
    assertEquals(
      [answer.status, answer.body.id, answer.body.key],
      [200, id, undefined],
      `${name} ${JSON.stringify(body)}`,
    );
    assertEquals(await statusOf(gateway, first), status, `after ${name} ${JSON.stringify(body)}`);
  }

  assertEquals((await ask(gateway, "GET /keys/ci")).body.expires_at, null);

  const turned = await ask(gateway, "POST /keys/ci/rotate", { overlap: "1h" });
  const second = turned.body.key;
  assertEquals([turned.status, turned.body.id], [200, id]);
  assert(Math.abs(Date.parse(String(turned.body.former_until)) - Date.now() - 3_600_000) < 60_000);
  assertNotEquals(second, first);
  assertEquals([await statusOf(gateway, first), await statusOf(gateway, second)], [200, 200]);

  const again = await ask(gateway, `POST /keys/${id}/rotate`, { overlap: "0s" });
  const third = again.body.key;
  const now = [first, second, third].map((key) => statusOf(gateway, key));
  assertEquals(await Promise.all(now), [401, 401, 200]);

  const ended = await ask(gateway, "DELETE /keys/ci");
  assertEquals([ended.status, ended.body.state, ended.body.key], [200, "revoked", undefined]);
  assertEquals(await statusOf(gateway, third), 401);
  assertEquals(errorOf(await ask(gateway, "DELETE /keys/ci")), [400, null, 'Cannot revoke key "ci": it is revoked']);
  assertEquals((await ask(gateway, "GET /keys/ci")).body.state, "revoked");
  const reborn = await ask(gateway, "POST /keys", { name: "ci" });
  assertEquals([reborn.status, reborn.body.id === id], [201, false]);
});

Deno.test("a rotation without a body keeps the current secret valid for a day", async () => {
  await using gateway = startAdmin();
  const { body } = await ask(gateway, "POST /keys/good/rotate");
  assert(Math.abs(Date.parse(String(body.former_until)) - Date.now() - DAY_MS) < 60_000);
  assertEquals(await statusOf(gateway, gateway.keys.good), 200);
});

Deno.test("lists and single keys show everything except the key and its hash", async () => {
  await using gateway = startAdmin();
  const rules = { models: ["sluice/*"], limits: { requests_per_minute: 5 }, budget: { usd: "0.30", period: "day" } };
  const expires_at = new Date(Date.now() + DAY_MS).toISOString();
  const made = await ask(gateway, "POST /keys", { name: "ci", rules, expires_at });
  const { key, ...shown } = made.body;
  assertEquals(shown.expires_at, expires_at);
  assertEquals(shown.rules, { ...rules, limits: { requests_per_minute: 5, report_only: false } });
  const budget = { period: "day", budget_usd: "0.3", spent_usd: "0", held_usd: "0", left_usd: "0.3" };
  const { body: single } = await ask(gateway, "GET /keys/ci");
  const { resets_at } = single.budget as JsonObject;
  assertMatch(String(resets_at), /T00:00:00\.000Z$/);
  assertEquals(single, { ...shown, budget: { ...budget, resets_at } });
  const list = (await ask(gateway, "GET /keys")).body;
  assertEquals(list.object, "list");
  const data = list.data as JsonObject[];
  assertEquals(data.map(({ name }) => name).sort(), ["ci", ...KEY_STATES].sort());
  assertEquals(data.find(({ name }) => name === "ci"), single);
  assertEquals(data.find(({ name }) => name === "good")?.budget, null);
  const text = JSON.stringify([list, gateway.logs]);
  for (const secret of [String(key), gateway.keys.good]) {
    assert(!text.includes(secret.slice(10)) && !text.includes(hashKey(secret)));
  }
});

Deno.test("changes of keys are logged with the key's id, reads are not", async () => {
  await using gateway = startAdmin();
  const { id } = (await ask(gateway, "POST /keys", { name: "ci" })).body;
  await ask(gateway, "GET /keys");
  await ask(gateway, "GET /keys/ci");
  await ask(gateway, "PATCH /keys/ci", { disabled: true, rules: {} });
  await ask(gateway, "PATCH /keys/ci", { group: "nobody" });
  await ask(gateway, "POST /keys/ci/rotate", {});
  await ask(gateway, "DELETE /keys/ci");
  const logs = gateway.logs.map(({ request_id: _, ...rest }) => rest);
  const line = { level: "info", event: "key_changed", key_id: String(id) } as const;
  assertEquals(logs, [
    { ...line, action: "create_key" },
    { ...line, action: "change_key", members: "disabled rules" },
    { ...line, action: "rotate_key" },
    { ...line, action: "revoke_key" },
  ]);
  assert(gateway.logs.every(({ request_id }) => typeof request_id === "string"));
});

Deno.test("an invalid request names the parameter and changes nothing", async () => {
  await using gateway = startAdmin();
  const before = (await ask(gateway, "GET /keys")).body;
  const cases: [name: string, body: Json, param: string | null, message: string][] = [
    ["POST /keys", {}, "name", "Missing required parameter: name"],
    ["POST /keys", { name: 1 }, "name", "Invalid value for name"],
    ["POST /keys", { name: "" }, "name", 'Cannot add a key ""'],
    ["POST /keys", { name: "a b" }, "name", "letters, digits"],
    ["POST /keys", { name: "x".repeat(300) }, "name", "Invalid value for name"],
    ["POST /keys", { name: "good" }, "name", "another key has this name"],
    [
      "POST /keys",
      { name: "ci", group: "nobody" },
      "group",
      'unknown group "nobody"; known: poor, speechless, default',
    ],
    ["POST /keys", { name: "ci", grup: "x" }, "grup", "known here: name, group, rules, expires_at"],
    ["POST /keys", { name: "ci", key: "sk-mine" }, "key", 'Unknown parameter "key"'],
    ["POST /keys", { name: "ci", rules: [] }, "rules", "Invalid value for rules"],
    ["POST /keys", { name: "ci", rules: { modelz: [] } }, "rules.modelz", "known here: models, endpoints"],
    ["POST /keys", { name: "ci", rules: { models: ["a", "?"] } }, "rules.models[1]", "Expected a model id"],
    ["POST /keys", { name: "ci", rules: { ips: ["10.0.0.0/99"] } }, "rules.ips[0]", "Expected an IP address"],
    ["POST /keys", { name: "ci", rules: { budget: { usd: 5 } } }, "rules.budget.usd", "Invalid value"],
    ["POST /keys", { name: "ci", rules: { budget: { usd: "-5" } } }, "rules.budget.usd", "decimal string"],
    ["POST /keys", { name: "ci", rules: { limits: { rpm: 5 } } }, "rules.limits.rpm", "known here: requests_per"],
    ["POST /keys", { name: "ci", expires_at: "1999-01-01" }, "expires_at", "in the future"],
    ["POST /keys", { name: "ci", expires_at: "soon" }, "expires_at", 'Cannot read the moment "soon"'],
    ["POST /keys", { name: "ci", expires_at: 5 }, "expires_at", "Invalid value for expires_at"],
    ["POST /keys", "[]", null, "expected a JSON object"],
    ["POST /keys", "{", null, "Cannot read the body as JSON"],
    ["POST /keys", '{"name":"a","name":"b"}', null, "Cannot read the body as JSON"],
    ["PATCH /keys/good", {}, null, "known members: disabled, group, rules, expires_at"],
    ["PATCH /keys/good", { disabled: "yes" }, "disabled", "Invalid value for disabled"],
    ["PATCH /keys/good", { name: "better" }, "name", 'Unknown parameter "name"'],
    ["PATCH /keys/good", { group: "nobody", disabled: true }, "group", "unknown group"],
    ["PATCH /keys/revoked", { disabled: false }, null, "it is revoked"],
    ["POST /keys/good/rotate", { overlap: "1 day" }, "overlap", 'Cannot read the time "1 day"'],
    ["POST /keys/good/rotate", { overlap: "9999d" }, "overlap", "from 0 seconds to 90 days"],
    ["POST /keys/good/rotate", { overlap: 60 }, "overlap", "Invalid value for overlap"],
    ["POST /keys/revoked/rotate", {}, null, "it is revoked"],
  ];
  for (const [name, body, param, message] of cases) {
    const what = `${name} ${JSON.stringify(body)}`;
    const [status, at, text] = errorOf(await ask(gateway, name, body));
    assertEquals([status, at], [400, param], `${what}: ${text}`);
    assertStringIncludes(text, message, what);
  }
  for (const name of ["GET /keys/nobody", "DELETE /keys/nobody", "GET /keys/%20"]) {
    assertEquals((await ask(gateway, name)).status, 404, name);
  }
  assertEquals((await ask(gateway, "PATCH /keys/nobody", { disabled: true })).status, 404);
  assertEquals((await ask(gateway, "GET /keys")).body, before);
  assertEquals(gateway.logs, []);
});

Deno.test("the body of an admin request has a small limit", async () => {
  await using gateway = startAdmin();
  const { status } = await ask(gateway, "POST /keys", { name: "ci", group: "x".repeat(65_536) });
  assertEquals(status, 413);
});

Deno.test("of two concurrent requests for one name or one revocation, one succeeds", async () => {
  await using gateway = startAdmin();
  const twins = await Promise.all(
    Array.from({ length: 8 }, () => ask(gateway, "POST /keys", { name: "ci" })),
  );
  assertEquals(twins.map(({ status }) => status).sort(), [201, ...Array(7).fill(400)]);
  const turned = await Promise.all(["a", "b"].map(() => ask(gateway, "POST /keys/ci/rotate", { overlap: "1h" })));
  const keys = turned.map(({ body }) => body.key);
  assertNotEquals(keys[0], keys[1]);
  // The later one is the present key, the earlier one its former one.
  assertEquals(await Promise.all(keys.map((key) => statusOf(gateway, key))), [200, 200]);
  const ends = await Promise.all(Array.from({ length: 4 }, () => ask(gateway, "DELETE /keys/ci")));
  assertEquals(ends.map(({ status }) => status).sort(), [200, 400, 400, 400]);
});
