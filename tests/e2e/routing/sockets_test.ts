import { assert, assertEquals, assertMatch } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { until } from "../../support/soon.ts";
import { model, startGateway, type TestGateway, upstream } from "../../support/gateway.ts";
import { errorBody, prompt, STREAMED, WHOLE } from "../../upstream/replies.ts";
import { events, type FakeUpstream, json, type ScriptedAnswer, startUpstream } from "../../upstream/mod.ts";

const BROKEN = json(errorBody("chat", "broken"), { status: 500 });
const ANSWER = json(WHOLE.chat);

/** A clock that a test moves. */
function handClock(): { now: () => number; pass: (ms: number) => void } {
  let now = 1_000;
  return { now: () => now, pass: (ms) => void (now += ms) };
}

/** A gateway with breakers in front of upstreams by name; each model has those targets. */
function start(
  upstreams: Record<string, FakeUpstream>,
  { models = { "acme/one": Object.keys(upstreams) }, config = {}, clock }: {
    models?: Record<string, string[]>;
    config?: JsonObject;
    clock?: { now: () => number };
  } = {},
): TestGateway {
  return startGateway({
    upstreams: Object.fromEntries(
      Object.entries(upstreams).map(([name, { url }]) => [name, upstream("openai-compatible", url)]),
    ),
    models: Object.entries(models).map(([id, names]) =>
      model(id, names.map((name, priority) => ({ upstream: name, model: id.slice(5), priority })))
    ),
    ...config,
  }, { breakers: true, ...(clock !== undefined && { monotonic: clock.now }) });
}

/** Sends a chat request; returns its status and the headers that name the upstream. */
async function ask(gateway: TestGateway, more: JsonObject = {}): Promise<[status: number, who: string]> {
  const response = await gateway.ask("chat", prompt("chat", more));
  await response.body?.cancel();
  const { headers } = response;
  return [response.status, `${headers.get("x-sluice-upstream")} ${headers.get("x-sluice-attempts")}`];
}

function statesOf({ gateway }: TestGateway): Record<string, string> {
  return Object.fromEntries(
    gateway.health.snapshot().map(({ upstream, model, state }) => [`${upstream}/${model}`, state]),
  );
}

Deno.test("a breaker opens after five failures, and closes with one of a hundred requests", async () => {
  const clock = handClock();
  let script: ScriptedAnswer = BROKEN;
  await using server = startUpstream(() => script);
  await using gateway = start({ only: server }, { clock });
  for (let request = 0; request < 5; request++) assertEquals(await ask(gateway), [502, "only 1"]);
  assertEquals(statesOf(gateway), { "only/one": "open" });

  const refused = await gateway.ask("chat", prompt("chat"));
  assertEquals([refused.status, refused.headers.get("x-sluice-upstream")], [503, null], await refused.text());
  const retryAfter = Number(refused.headers.get("retry-after-ms"));
  assert(retryAfter > 0 && retryAfter <= 6_000, String(retryAfter));
  assertEquals(server.requests.length, 5);

  clock.pass(retryAfter);
  const held = Promise.withResolvers<void>();
  script = { ...ANSWER, before: held.promise };
  const pending = Array.from({ length: 100 }, () => ask(gateway));
  const first = await Promise.race(pending);
  assertEquals(first[0], 503);
  // All others get an answer at once.
  await Promise.all(pending.map((one) => Promise.race([one, until("6 requests", () => server.requests.length === 6)])));
  held.resolve();
  const statuses = (await Promise.all(pending)).map(([status]) => status);
  assertEquals(statuses.filter((status) => status === 200).length, 1);
  assertEquals(statuses.filter((status) => status === 503).length, 99);
  assertEquals([server.requests.length, statesOf(gateway)], [6, { "only/one": "closed" }]);

  script = ANSWER;
  const after = await Promise.all(Array.from({ length: 100 }, () => ask(gateway)));
  assertEquals(after.filter(([status]) => status === 200).length, 100);
  assertEquals(
    gateway.logs.filter(({ event }) => event.startsWith("breaker")).map(({ event, level, upstream, model }) => [
      event,
      level,
      upstream,
      model,
    ]),
    [["breaker_opened", "warn", "only", "one"], ["breaker_closed", "info", "only", "one"]],
  );
});

Deno.test("a limit of one model leaves the upstream's other models available, for its stated time", async () => {
  const clock = handClock();
  const busy = json(errorBody("chat", "slower"), { status: 429, headers: { "retry-after": "7" } });
  await using server = startUpstream(({ body }) => JSON.parse(body).model === "busy" ? busy : ANSWER);
  const models = { "acme/busy": ["only"], "acme/other": ["only"] };
  await using gateway = start({ only: server }, { models, clock });
  assertEquals(await ask(gateway, { model: "acme/busy" }), [429, "only 1"]);
  clock.pass(1_000);
  const response = await gateway.ask("chat", prompt("chat", { model: "acme/busy" }));
  await response.body?.cancel();
  assertEquals([response.status, response.headers.get("retry-after")], [429, "6"]);
  assertEquals(server.requests.length, 1);
  assertEquals(await ask(gateway, { model: "acme/other" }), [200, "only 1"]);
  assertEquals(statesOf(gateway), { "only/busy": "cooling", "only/other": "closed" });
  clock.pass(6_000);
  assertEquals(await ask(gateway, { model: "acme/busy" }), [429, "only 1"]);
  assertEquals(server.requests.length, 3);
});

Deno.test("client errors do not count for a target", async () => {
  await using server = startUpstream(() => json(errorBody("chat", "wrong"), { status: 400 }));
  await using gateway = start({ only: server });
  for (let request = 0; request < 20; request++) assertEquals((await ask(gateway))[0], 400);
  const [row] = gateway.gateway.health.snapshot();
  assertEquals([row?.state, row?.samples], ["closed", 0]);
});

Deno.test("truncated streams count as failures of their target", async () => {
  const frames = STREAMED.chat;
  await using server = startUpstream(() =>
    events(frames.join(""), { cutAfterBytes: frames.slice(0, 2).join("").length })
  );
  await using gateway = start({ only: server });
  for (let request = 0; request < 5; request++) {
    const response = await gateway.ask("chat", prompt("chat", { stream: true }));
    assertMatch(await response.text(), /error/);
  }
  assertEquals(statesOf(gateway), { "only/one": "open" });
});
