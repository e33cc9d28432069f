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
  const asked = Array.from({ length: 100 }, () => ask(gateway));
  const first = await Promise.race(asked);
  assertEquals(first[0], 503);
  // All others get an answer at once.
  await Promise.all(asked.map((one) => Promise.race([one, until("6 requests", () => server.requests.length === 6)])));
  held.resolve();
  const statuses = (await Promise.all(asked)).map(([status]) => status);
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

Deno.test("a hundred concurrent clients of a failing target are answered by another", async () => {
  await using first = startUpstream(() => BROKEN);
  await using second = startUpstream(() => ANSWER);
  await using gateway = start({ first, second });
  const asked = await Promise.all(Array.from({ length: 100 }, () => ask(gateway)));
  assertEquals(asked.filter(([status]) => status !== 200), []);
  assertEquals(statesOf(gateway), { "first/one": "open", "second/one": "closed" });
  const tried = first.requests.length;
  assertEquals(await ask(gateway), [200, "second 1"]);
  assertEquals(first.requests.length, tried);
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

Deno.test("a short limit is waited for if there is no other target", async () => {
  let asked = 0;
  const busy = json(errorBody("chat", "slower"), { status: 429, headers: { "retry-after-ms": "30" } });
  await using server = startUpstream(() => asked++ === 0 ? busy : ANSWER);
  await using gateway = start({ only: server });
  assertEquals(await ask(gateway), [200, "only 2"]);
});

Deno.test("client errors and disconnects do not count for a target", async () => {
  const held = Promise.withResolvers<void>();
  await using server = startUpstream(({ body }) =>
    body.includes("leave") ? { ...ANSWER, before: held.promise } : json(errorBody("chat", "wrong"), { status: 400 })
  );
  await using gateway = start({ only: server });
  for (let request = 0; request < 20; request++) assertEquals((await ask(gateway))[0], 400);
  for (let request = 0; request < 20; request++) {
    const leave = new AbortController();
    const asked = gateway.ask("chat", prompt("chat", { user: "leave" }), { signal: leave.signal }).catch(() => {});
    await until("the next request", () => server.requests.length === 21 + request);
    leave.abort();
    await asked;
    await server.requests.at(-1)?.gone;
  }
  held.resolve();
  await until("40 lines", () => gateway.requestLines.length === 40);
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

Deno.test("the speed of streams is measured", async () => {
  await using server = startUpstream(() => events(STREAMED.chat.join("")));
  await using gateway = start({ only: server });
  await (await gateway.ask("chat", prompt("chat", { stream: true }))).text();
  const [row] = gateway.gateway.health.snapshot();
  assert(row?.first_ms !== undefined && row.first_ms >= 0 && row.first_ms < 5_000, JSON.stringify(row));
});

Deno.test("a storm of failures is not amplified, and ends soon after it", async () => {
  let failing = true;
  const script = () => failing ? BROKEN : ANSWER;
  await using first = startUpstream(script);
  await using second = startUpstream(script);
  const routing = { breaker: { window_ms: 2_000, open_ms: 100 } };
  await using gateway = start({ first, second }, { config: { routing } });
  const PER_SECOND = 200;
  const send = async (ms: number): Promise<number[]> => {
    const sent: Promise<[number, string]>[] = [];
    const began = performance.now();
    while (performance.now() - began < ms) {
      while (sent.length < (performance.now() - began) * PER_SECOND / 1_000) sent.push(ask(gateway));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    return (await Promise.all(sent)).map(([status]) => status);
  };
  const during = await send(1_500);
  const attempts = first.requests.length + second.requests.length;
  assert(attempts <= during.length * 1.25, `${attempts} attempts for ${during.length} requests`);
  assertEquals(during.filter((status) => status === 200).length, 0);
  failing = false;
  await send(400);
  const after = await send(300);
  assertEquals(after.filter((status) => status !== 200), []);
});
