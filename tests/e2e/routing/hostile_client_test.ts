/** Tests that one client cannot make a target unavailable to others, whatever its requests make an upstream answer. */
import { assert, assertEquals, assertMatch } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { simulateTime } from "../../support/simulated_time.ts";
import { skipInQuick } from "../../support/skip.ts";
import { until } from "../../support/soon.ts";
import { oneModel, startGateway, type TestGateway, type TestKey, UPSTREAM_KEY } from "../../support/gateway.ts";
import { errorBody, prompt, PROTOCOLS, WHOLE } from "../../upstream/replies.ts";
import { json, type ScriptedAnswer, startUpstream, type UpstreamRequest } from "../../upstream/mod.ts";
import { plainModel } from "../../support/plain_model.ts";

const SPOKEN = ["chat", "responses", "messages", "gemini"] as const;

const IS_SAMPLE = skipInQuick("Each second error of an upstream, and each in more than one protocol");

/** A text that makes the hosts of these tests answer with an error. */
const POISON = "poison";

const GEMINI: JsonObject = {
  candidates: [{ content: { role: "model", parts: [{ text: "Hello there" }] }, finishReason: "STOP" }],
  usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 2 },
};

/** Upstream errors caused by malicious requests, by protocol. */
function poisoned(protocol: typeof SPOKEN[number], status: number): ScriptedAnswer {
  const message = "You do not have permission to access the file abc of project p-12345";
  const body = protocol === "gemini"
    ? { error: { code: status, message, status: status === 403 ? "PERMISSION_DENIED" : "UNKNOWN" } }
    : errorBody(protocol, message, status === 403 ? "permission_error" : "server_error");
  return json(body, { status });
}

async function statusOf(
  gateway: TestGateway,
  { protocol, text, key }: { protocol: typeof PROTOCOLS[number]; text: string; key?: TestKey },
): Promise<number> {
  const response = await gateway.ask(protocol, prompt(protocol, {}, text), key === undefined ? {} : { key });
  await response.text();
  return response.status;
}

Deno.test("errors caused by one client leave a target available to others", async () => {
  const refusals: [name: string, script: (protocol: typeof SPOKEN[number]) => ScriptedAnswer][] = [
    ...[400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529].map((status) =>
      [String(status), (protocol: typeof SPOKEN[number]) => poisoned(protocol, status)] as [
        string,
        () => ScriptedAnswer,
      ]
    ),
    ["403 of something in between", () => ({ status: 403, headers: { "content-type": "text/html" }, body: "<html>" })],
    ["429 for an hour", (protocol) => ({ ...poisoned(protocol, 429), headers: { "retry-after": "3600" } })],
    ["503 for an hour", (protocol) => ({ ...poisoned(protocol, 503), headers: { "retry-after": "3600" } })],
    ["no money", () => json(errorBody("chat", "pay", "insufficient_quota"), { status: 429 })],
    ["garbage", () => ({ body: "<html>" })],
    ["a connection that breaks off", () => json(WHOLE.chat, { cutAfterBytes: 0 })],
  ];
  for (const protocol of SPOKEN) {
    let script: ScriptedAnswer = { body: "" };
    const whole = protocol === "gemini" ? GEMINI : WHOLE[protocol];
    await using server = startUpstream(({ method, body }: UpstreamRequest) =>
      method === "GET" ? json({ data: [], models: [] }) : body.includes(POISON) ? script : json(whole)
    );
    for (const [index, [name, play]] of refusals.entries()) {
      // Each refusal is tried in every second protocol; a fast run tries half of them, in one protocol each.
      const isTried = IS_SAMPLE
        ? SPOKEN[index / 2 % SPOKEN.length] === protocol
        : (index + SPOKEN.indexOf(protocol)) % 2 === 0;
      if (!isTried) continue;
      script = play(protocol);
      await using gateway = startGateway(oneModel(protocol, server.url), { breakers: true });
      const client = protocol === "gemini" ? "chat" : protocol;
      const hostile = await gateway.addKey();
      for (let request = 0; request < 12; request++) {
        assert(await statusOf(gateway, { protocol: client, text: POISON, key: hostile }) >= 400);
        if (request % 3 === 0) {
          assertEquals(await statusOf(gateway, { protocol: client, text: "Hello" }), 200, `${protocol}, ${name}`);
        }
      }
      assertEquals(await statusOf(gateway, { protocol: client, text: "Hello" }), 200, `${protocol}, ${name}`);
    }
  }
});

Deno.test("failures that two keys cause together leave a target available to others", async () => {
  await using server = startUpstream(({ method, body }) =>
    method === "GET" ? json({ data: [] }) : body.includes(POISON) ? poisoned("chat", 500) : json(WHOLE.chat)
  );
  await using gateway = startGateway(oneModel("chat", server.url), { breakers: true });
  const hostile = [await gateway.addKey(), await gateway.addKey()];
  const statuses: number[] = [];
  for (let request = 0; request < 20; request++) {
    for (const key of hostile) await statusOf(gateway, { protocol: "chat", text: POISON, key });
    if (request % 5 === 4) statuses.push(await statusOf(gateway, { protocol: "chat", text: "Hello" }));
  }
  assertEquals(gateway.logs.findLast(({ event }) => event === "breaker_closed")?.scope, "model");
  assertEquals(statuses, [200, 200, 200, 200]);
});

Deno.test("a recovered target serves others, however often one client's requests fail there", async () => {
  using time = simulateTime(1_800_000_000_000);
  let isDead = true;
  await using server = startUpstream(({ method, body }) =>
    method === "GET" ? json({ data: [] }) : isDead || body.includes(POISON) ? poisoned("chat", 500) : json(WHOLE.chat)
  );
  await using gateway = startGateway(oneModel("chat", server.url), { breakers: true });
  const hostile = await gateway.addKey();
  const poison = () => statusOf(gateway, { protocol: "chat", text: POISON, key: hostile });
  const hello = () => statusOf(gateway, { protocol: "chat", text: "Hello" });
  for (let request = 0; request < 8; request++) {
    await poison();
    await hello();
  }
  assertEquals(gateway.logs.findLast(({ event }) => event === "breaker_opened")?.scope, "model");
  isDead = false;
  const statuses: number[] = [];
  for (let second = 0; second < 40; second++) {
    await poison();
    statuses.push(await hello());
    await time.pass(1_000);
  }
  // Five seconds, plus or minus a fifth.
  const served = statuses.indexOf(200);
  assert(served >= 4 && served <= 7, String(statuses));
  assert(statuses.slice(served).every((status) => status === 200), String(statuses));
});

Deno.test("a 403 is returned as 502 that explains possible causes without the vendor's text", async () => {
  for (const protocol of SPOKEN) {
    await using server = startUpstream(({ method }) => method === "GET" ? json({}) : poisoned(protocol, 403));
    await using gateway = startGateway(oneModel(protocol, server.url), { breakers: true });
    for (const client of PROTOCOLS) {
      const response = await gateway.ask(client, prompt(client));
      const { error } = await response.json();
      assertEquals([response.status, response.headers.get("x-should-retry")], [502, "false"]);
      assertMatch(error.message, /vendor refused this request \(403\)/);
      assert(!/p-12345|abc/.test(error.message), error.message);
      if (client === "gemini") assertEquals(error.details[0].reason, "UPSTREAM_REFUSED");
      else if (client !== "messages") assertEquals(error.code, "upstream_refused");
    }
    assertEquals(gateway.gateway.health.snapshot().map(({ state, samples }) => [state, samples]), [["closed", 0]]);
    assertEquals(gateway.logs.filter(({ event }) => event === "target_failed").length, PROTOCOLS.length);
    assertEquals(server.requests.filter(({ method }) => method === "GET").length, 0);
  }
});

Deno.test("a probe without client content detects refused and accepted keys", async () => {
  for (const protocol of SPOKEN) {
    using time = simulateTime(1_800_000_000_000);
    let accepts = false;
    const whole = protocol === "gemini" ? GEMINI : WHOLE[protocol];
    const hasKey = ({ headers }: UpstreamRequest) =>
      [...headers.values()].some((value) => value.includes(UPSTREAM_KEY)) && accepts;
    await using server = startUpstream((request) =>
      !hasKey(request)
        ? poisoned(protocol, 401)
        : request.method === "GET"
        ? json({ data: [], models: [] })
        : json(whole)
    );
    await using gateway = startGateway(oneModel(protocol, server.url), { breakers: true });
    const client = protocol === "gemini" ? "chat" : protocol;
    const ask = () => statusOf(gateway, { protocol: client, text: "Hello" });
    const state = () => gateway.gateway.health.snapshot()[0]?.state;
    const generations = () => server.requests.filter(({ body }) => body.includes("Hello")).length;
    assertEquals(await ask(), 502);
    while (state() !== "quarantined") await time.settle(2);
    assertEquals(await ask(), client === "messages" ? 529 : 503);
    assertEquals(
      gateway.logs.filter(({ event }) => event.startsWith("upstream_key")).map(({ event, scope }) => [event, scope]),
      [["upstream_key_refused", "upstream"]],
    );
    // While it is rejected, no client's request goes there.
    await time.pass(120_000);
    assertEquals([state(), generations()], ["quarantined", 1]);
    accepts = true;
    await time.pass(150_000);
    // On a starved machine a probe may be answered after its simulated timeout, so that another must follow.
    while (state() === "quarantined") await time.pass(1_000);
    assertEquals([state(), generations(), await ask()], ["closed", 1, 200]);
    const probes = server.requests.filter(({ body }) => !body.includes("Hello"));
    assert(probes.every(({ body }) => body === "" || body === "{}"), protocol);
    assert(probes.length >= 4 && probes.length <= 20, String(probes.length));
  }
});

Deno.test("a vendor key with few permissions does not count as refused", async () => {
  // It may neither list models nor use the endpoint that a probe asks, but others.
  await using server = startUpstream(({ method, body }) =>
    body.includes(POISON)
      ? poisoned("chat", 401)
      : method === "GET" || body === "{}"
      ? poisoned("chat", 403)
      : json(WHOLE.chat)
  );
  await using gateway = startGateway(oneModel("chat", server.url), { breakers: true });
  const hostile = await gateway.addKey();
  assertEquals(await statusOf(gateway, { protocol: "chat", text: POISON, key: hostile }), 502);
  await until("the probe", () => server.requests.some(({ body }) => body === "{}"));
  assertEquals(await statusOf(gateway, { protocol: "chat", text: "Hello" }), 200);
  assertEquals(gateway.gateway.health.snapshot().map(({ state }) => state), ["closed"]);
});

Deno.test("an upstream with a public model list is probed without a model", async () => {
  await using server = startUpstream(({ method }) =>
    method === "GET" ? json({ data: [] }) : json(errorBody("chat", "who are you"), { status: 401 })
  );
  await using gateway = startGateway(oneModel("chat", server.url), { breakers: true });
  const response = await gateway.ask("chat", prompt("chat"));
  await response.body?.cancel();
  assertEquals([response.status, response.headers.get("x-should-retry")], [502, "false"]);
  await until("the quarantine", () => gateway.gateway.health.snapshot()[0]?.state === "quarantined");
  assertEquals(server.requests.slice(1).map(({ method, body }) => `${method} ${body}`), ["GET ", "GET ", "POST {}"]);
});

Deno.test("simulated faults affect only their row and key", async () => {
  const row = (id: string, models: string[]): JsonObject =>
    plainModel({
      id,
      context_length: 100_000,
      targets: models.map((model, priority) => ({ upstream: "embedded", model, priority })),
    });
  await using gateway = startGateway({
    models: [row("rehearsal/one", ["fault", "echo"]), row("rehearsal/two", ["fault"]), row("acme/echo", ["echo"])],
  }, { breakers: true });
  const hostile = await gateway.addKey();
  const ask = async (model: string, text: string, key: TestKey) => {
    const response = await gateway.ask("chat", { model, messages: [{ role: "user", content: text }] }, { key });
    await response.text();
    return response.status;
  };
  for (
    const fault of [
      "status:401",
      "status:403",
      "status:402",
      "status:429 retry-after:3000",
      "status:500",
      "cut",
      "refuse",
    ]
  ) {
    for (let request = 0; request < 12; request++) await ask("rehearsal/one", fault, hostile);
    for (const key of [hostile, gateway.key]) {
      assertEquals(
        await Promise.all(
          ["rehearsal/one", "rehearsal/two", "acme/echo", "sluice/echo"].map((id) => ask(id, "Hello", key)),
        ),
        [200, 200, 200, 200],
        fault,
      );
    }
  }
  const states = gateway.gateway.health.snapshot().map(({ upstream, model, state }) => `${upstream}/${model} ${state}`);
  assert(states.includes("embedded/rehearsal/two:fault closed"), String(states));
});
