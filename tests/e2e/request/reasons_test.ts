import { assertEquals } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { EntryDetails } from "../../../lib/store/ledger.ts";
import { model, startGateway, type TestGateway, upstream } from "../../support/gateway.ts";
import { prompt, PROTOCOLS, WHOLE } from "../../upstream/replies.ts";
import { json, type ScriptedAnswer, startUpstream } from "../../upstream/mod.ts";
import { entriesOf } from "./world.ts";

/** A gateway with two targets of one model. */
function start(
  [one, two]: readonly [string, string],
  { breakers = false, ...more }: JsonObject & { breakers?: boolean } = {},
): TestGateway {
  return startGateway({
    upstreams: {
      one: upstream("openai", one, { protocols: ["chat"] }),
      two: upstream("openai", two, { protocols: ["chat"] }),
    },
    models: [
      model("acme/one", [{ upstream: "one", model: "m" }, { upstream: "two", model: "m" }], {
        pricing: { prompt: "0.00001", completion: "0.00001" },
      }),
      model("acme/other", [{ upstream: "one", model: "m" }]),
    ],
    ...more,
  }, { described: false, breakers });
}

async function detailsOf(gateway: TestGateway, count = 1): Promise<(EntryDetails | undefined)[]> {
  await gateway.gateway.backgroundTasks.done();
  return (await entriesOf(gateway.store.ledger, count)).map(({ details }) => details);
}

function failing(status: number, error: JsonObject): ScriptedAnswer {
  return json({ error }, { status, headers: { "x-request-id": `vendor-${status}` } });
}

Deno.test("a refused request is entered with its reason, in each protocol", async () => {
  await using up = startUpstream(() => json(WHOLE.chat));
  // Bodies of Gemini's protocol have neither a model nor a temperature.
  for (const protocol of PROTOCOLS.filter((protocol) => protocol !== "gemini")) {
    await using gateway = start([up.url, up.url], {
      groups: {
        default: { key_limits: { requests_per_minute: 1 } },
        narrow: { models: ["acme/other"] },
        poor: { key_budget: { usd: "0.000001", period: "month" } },
        limited: { limits: { tokens_per_minute: 1 } },
      },
    });
    const ask = async (group: string | undefined, body: JsonObject | string): Promise<EntryDetails["reason"]> => {
      const key = group === undefined ? undefined : await gateway.addKey({ group });
      const before = (await gateway.store.ledger.entries({ after: 0, limit: 100 })).length;
      const response = await gateway.ask(protocol, body, key === undefined ? {} : { key });
      await response.text();
      const [details] = (await detailsOf(gateway, before + 1)).slice(before);
      return details?.reason;
    };
    const requested = prompt(protocol, { model: "acme/one" });
    assertEquals(await ask(undefined, requested), undefined);
    const limit = await ask(undefined, requested);
    assertEquals({ ...limit, limit: { ...limit?.limit, free_after_ms: 0 } }, {
      code: "limit",
      error: "rate_limit_requests",
      limit: {
        scope: "key",
        id: gateway.key.id,
        unit: "requests",
        limit: 1,
        needed: 1,
        remaining: 0,
        free_after_ms: 0,
      },
      set_by: "group",
    });
    const tokens = await ask("limited", requested);
    assertEquals([tokens?.code, tokens?.limit?.scope, tokens?.limit?.id, tokens?.limit?.unit, tokens?.set_by], [
      "limit",
      "group",
      "limited",
      "tokens",
      undefined,
    ]);
    assertEquals(tokens?.limit?.free_after_ms, undefined, "no wait helps");
    assertEquals(await ask("narrow", requested), {
      code: "permission",
      param: "model",
      permission: { of: "model", name: "acme/one" },
    });
    assertEquals(await ask("narrow", prompt(protocol, { model: "my secret" })), {
      code: "permission",
      param: "model",
      permission: { of: "model", name: "other" },
    });
    const budget = await ask("poor", requested);
    assertEquals([budget?.code, budget?.set_by, budget?.budget?.scope, budget?.budget?.period], [
      "budget",
      "group",
      "key",
      "month",
    ]);
    assertEquals([budget?.budget?.budget_usd, budget?.budget?.left_usd, budget?.budget?.resets_on], [
      "0.000001",
      "0.000001",
      "1970-02-01",
    ]);
    const other = await gateway.addKey();
    const wrong = [
      prompt(protocol, { model: "acme/none" }),
      `{"model": "acme/one", "messages": "a secret"`,
      prompt(protocol, { model: "acme/one", temperature: "a secret" }),
    ];
    for (const body of wrong) await (await gateway.ask(protocol, body, { key: other })).text();
    const all = (await detailsOf(gateway, 9)).slice(6).map((details) => details?.reason);
    assertEquals(all, [
      { code: "model_not_found", error: "model_not_found", param: "model" },
      { code: "invalid", rule: 'Cannot read the body as JSON: Expected "," or "}" at position 44 (line 1, column 45)' },
      { code: "invalid", param: "temperature", rule: "Expected a number, not a string" },
    ]);
  }
});

Deno.test("a failed attempt is entered with the vendor's error, and so are the following ones", async () => {
  let fails = true;
  await using one = startUpstream(() =>
    failing(429, { code: "rate_limit_exceeded", message: "Slow down, sk-abcdefghijklmnopqrstuvwx" })
  );
  await using two = startUpstream(() => fails ? failing(400, { message: "no 'a secret'" }) : json(WHOLE.chat));
  await using gateway = start([one.url, two.url]);
  await (await gateway.ask("chat", prompt("chat", { model: "acme/one" }))).text();
  fails = false;
  await (await gateway.ask("chat", prompt("chat", { model: "acme/one" }))).text();
  const [failed, answered] = (await detailsOf(gateway, 2)).map((details) => ({
    ...details,
    attempts: details?.attempts?.map((attempt) => ({ ...attempt, ms: 0 })),
  }));
  const limited = {
    upstream: "one",
    model: "acme/one",
    outcome: "limited",
    ms: 0,
    status: 429,
    code: "rate_limit_exceeded",
    message: "Slow down, [key]",
    request_id: "vendor-429",
  };
  const rejected = {
    upstream: "two",
    model: "acme/one",
    outcome: "rejected",
    ms: 0,
    status: 400,
    request_id: "vendor-400",
  };
  assertEquals(failed, { reason: { code: "upstream_rejected" }, attempts: [limited, rejected] });
  const success = { upstream: "two", model: "acme/one", outcome: "success", ms: 0 };
  assertEquals(answered, { attempts: [limited, success] });
});

Deno.test("end user and tags of a request are entered", async () => {
  await using up = startUpstream(() => json(WHOLE.chat));
  await using gateway = start([up.url, up.url]);
  const member = {
    chat: { user: "anna" },
    responses: { safety_identifier: "anna" },
    messages: { metadata: { user_id: "anna" } },
  };
  for (const protocol of ["chat", "responses", "messages"] as const) {
    await (await gateway.ask(protocol, prompt(protocol, { model: "acme/one", ...member[protocol] }))).text();
  }
  const headers = { "x-sluice-user": "ben 2", "x-sluice-tags": "team:a, job=7,team:a" };
  await (await gateway.ask("chat", prompt("chat", { model: "acme/one", user: "anna" }), { headers })).text();
  const anna = { user: "anna" };
  assertEquals(await detailsOf(gateway, 4), [anna, anna, anna, { user: "ben 2", tags: ["team:a", "job=7"] }]);
  const sent = up.requests.at(-1);
  assertEquals([...(sent?.headers.keys() ?? [])].filter((name) => name.startsWith("x-sluice")), []);
});

Deno.test("a malformed header about the end user or tags is refused, and entered", async () => {
  await using up = startUpstream(() => json(WHOLE.chat));
  await using gateway = start([up.url, up.url]);
  const wrong: Record<string, string>[] = [
    { "x-sluice-user": "" },
    { "x-sluice-user": "a".repeat(257) },
    { "x-sluice-user": "\u00e4" },
    { "x-sluice-tags": "a,,b" },
    { "x-sluice-tags": "a b" },
    { "x-sluice-tags": "a".repeat(65) },
    { "x-sluice-tags": Array.from({ length: 11 }, (_, index) => `t${index}`).join(",") },
  ];
  for (const headers of wrong) {
    const response = await gateway.ask("chat", prompt("chat", { model: "acme/one" }), { headers });
    const { error } = await response.json();
    assertEquals([response.status, error.message.includes(`"${Object.keys(headers)[0]}"`)], [400, true]);
  }
  const reasons = (await detailsOf(gateway, wrong.length)).map((details) => details?.reason);
  assertEquals(reasons.every((reason) => reason?.code === "invalid"), true);
  assertEquals(
    reasons[0]?.rule,
    'Cannot read the header "x-sluice-user": expected 1 to 256 printable ASCII characters',
  );
  assertEquals(up.requests.length, 0);
});

Deno.test("a request without permission is entered", async () => {
  await using up = startUpstream(() => json(WHOLE.chat));
  await using gateway = start([up.url, up.url], {
    groups: { default: {}, deaf: { protocols: ["messages"], endpoints: ["chat", "responses", "models"] } },
  });
  const key = await gateway.addKey({ group: "deaf" });
  const statuses = [];
  for (const protocol of PROTOCOLS) {
    const response = await gateway.ask(protocol, prompt(protocol, { model: "acme/one" }), { key });
    await response.text();
    statuses.push(response.status);
  }
  assertEquals(statuses, PROTOCOLS.map(() => 403));
  // Nothing is entered for an endpoint that has no part in the ledger.
  const counted = await fetch(`${gateway.url}/anthropic/v1/messages/count_tokens`, {
    method: "POST",
    headers: { "x-api-key": key.key },
    body: "{}",
  });
  assertEquals([counted.status, (await counted.text()).length > 0], [403, true]);
  assertEquals(await detailsOf(gateway, 4), [
    { reason: { code: "permission", permission: { of: "protocol", name: "chat" } } },
    { reason: { code: "permission", permission: { of: "protocol", name: "responses" } } },
    { reason: { code: "permission", permission: { of: "endpoint", name: "messages" } } },
    { reason: { code: "permission", permission: { of: "protocol", name: "gemini" } } },
  ]);
  const [entry] = await entriesOf(gateway.store.ledger, 4);
  assertEquals([entry?.keyId, entry?.group, entry?.endpoint, entry?.status, entry?.ending], [
    key.id,
    "deaf",
    "chat",
    403,
    "refused",
  ]);
});

Deno.test("texts of vendors and clients are bounded and have no control characters in the ledger", async () => {
  const odd = `\u001b[31m${"no ".repeat(98)}\ud83d\ude00\u0000 and more`;
  await using one = startUpstream(() => failing(500, { code: "a b\n", message: odd }));
  await using two = startUpstream(() => json(WHOLE.chat));
  await using gateway = start([one.url, two.url]);
  const user = `\n${"u".repeat(400)}`;
  await (await gateway.ask("chat", prompt("chat", { model: "acme/one", user }))).text();
  const [details] = await detailsOf(gateway);
  const [attempt] = details?.attempts ?? [];
  assertEquals([attempt?.code, attempt?.message?.startsWith("[31mno"), details?.user], [
    undefined,
    true,
    "u".repeat(255),
  ]);
  // deno-lint-ignore no-control-regex
  assertEquals(/[\x00-\x1f]/.test(attempt?.message ?? ""), false);
  assertEquals([(attempt?.message ?? "").length <= 300, attempt?.message?.isWellFormed()], [true, true]);
});

Deno.test("an image request is entered with its reason, end user and tags", async () => {
  await using gateway = startGateway({}, { described: false });
  const ask = async (body: JsonObject | string, headers: Record<string, string> = {}) => {
    const response = await fetch(`${gateway.url}/v1/images/generations`, {
      method: "POST",
      headers: { authorization: `Bearer ${gateway.key.key}`, "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    await response.text();
    return response.status;
  };
  const image = { model: "sluice/canvas", prompt: "a secret", size: "64x64", user: "anna" };
  const statuses = [
    await ask({ ...image, n: 99 }),
    await ask(image, { "x-sluice-tags": "a b" }),
    await ask({ ...image, model: "acme/none" }, { "x-sluice-user": "ben", "x-sluice-tags": "t" }),
  ];
  assertEquals(statuses, [400, 400, 404]);
  assertEquals(await detailsOf(gateway, 3), [
    { reason: { code: "invalid", param: "n", rule: "Expected at most 10" } },
    {
      reason: {
        code: "invalid",
        rule:
          'Cannot read the header "x-sluice-tags": expected at most 10 tags, separated by commas, of 1 to 64 letters, ' +
          "digits and . _ : / = @ + - each",
      },
    },
    { reason: { code: "model_not_found", error: "model_not_found", param: "model" }, user: "ben", tags: ["t"] },
  ]);
});

Deno.test("a request without available targets is entered with the state of each", async () => {
  await using one = startUpstream(() => json({ error: {} }, { status: 429, headers: { "retry-after": "30" } }));
  await using two = startUpstream(() => json({ error: {} }, { status: 429, headers: { "retry-after": "60" } }));
  await using gateway = start([one.url, two.url], { breakers: true });
  for (let count = 0; count < 2; count++) {
    await (await gateway.ask("chat", prompt("chat", { model: "acme/one" }))).text();
  }
  const [first, second] = await detailsOf(gateway, 2);
  assertEquals([first?.reason?.code, first?.attempts?.map(({ outcome }) => outcome)], [
    "upstream_limit",
    ["limited", "limited"],
  ]);
  assertEquals(second?.reason?.targets?.map(({ upstream, model, why }) => [upstream, model, why]).sort(), [
    ["one", "acme/one", "cooling"],
    ["two", "acme/one", "cooling"],
  ]);
  assertEquals([second?.reason?.code, second?.attempts], ["upstream_limit", undefined]);
});
