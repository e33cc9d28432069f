/** Attempts at upstreams as operators see them: metrics, log lines, and the reason in `/readyz`. */
import { assert, assertEquals, assertMatch } from "@std/assert";
import { explainRequest } from "../../../lib/billing/reports/explain.ts";
import { explanationText } from "../../../lib/billing/reports/explain_text.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { model, oneModel, startGateway, type TestGateway, upstream, UPSTREAM_KEY } from "../../support/gateway.ts";
import { readiness } from "../../../lib/status/health.ts";
import { simulateTime } from "../../support/simulated_time.ts";
import { errorBody, prompt, PROTOCOLS, STREAMED, WHOLE } from "../../upstream/replies.ts";
import { events, json, type ScriptedAnswer, startUpstream } from "../../upstream/mod.ts";
import { CLOSED_PORT } from "../../support/closed_port.ts";
import { valueOf } from "./exposition.ts";
import { eventually, until } from "../../support/soon.ts";

const MINUTE_MS = 60_000;

/** A configuration with one model and these targets in order. */
function targets(urls: Record<string, string>, more: JsonObject = {}): JsonObject {
  const names = Object.keys(urls);
  return {
    upstreams: Object.fromEntries(
      names.map((name) => [name, upstream("openai-compatible", urls[name] ?? "", more)]),
    ),
    models: [model("acme/one", names.map((name, priority) => ({ upstream: name, model: `m-${name}`, priority })))],
  };
}

async function metricsOf({ url }: TestGateway): Promise<string> {
  return await (await fetch(`${url}/metrics`)).text();
}

async function ask(gateway: TestGateway, more: JsonObject = {}): Promise<number> {
  const response = await gateway.ask("chat", prompt("chat", more));
  await response.text();
  return response.status;
}

Deno.test("attempts are counted by upstream, model and outcome, and timed by upstream", async () => {
  const plays: [outcome: string, script: ScriptedAnswer][] = [
    ["success", json(WHOLE.chat)],
    ["failure", json(errorBody("chat", "broken"), { status: 500 })],
    ["limited", json(errorBody("chat", "slower"), { status: 429 })],
    ["overloaded", json(errorBody("chat", "busy"), { status: 503 })],
    ["key_refused", json(errorBody("chat", "who"), { status: 401 })],
    ["rejected", json(errorBody("chat", "what"), { status: 400 })],
    ["rejected", json(errorBody("chat", "not you"), { status: 403 })],
  ];
  for (const [outcome, script] of plays) {
    await using first = startUpstream(() => script);
    await using second = startUpstream(() => json(WHOLE.chat));
    await using gateway = startGateway(targets({ first: first.url, second: second.url }));
    await ask(gateway);
    const text = await metricsOf(gateway);
    const value = (name: string, labels: Record<string, string>) => valueOf(text, name, labels);
    const of = { upstream: "first", model: "acme/one" };
    assertEquals(value("sluice_upstream_attempts_total", { ...of, outcome }), "1", outcome);
    assertEquals(value("sluice_upstream_attempt_seconds_count", { upstream: "first" }), "1", outcome);
    const asksSecond = second.requests.some(({ method }) => method === "POST");
    assertEquals(
      value("sluice_upstream_attempts_total", { upstream: "second", model: "acme/one", outcome: "success" }),
      asksSecond ? "1" : undefined,
      outcome,
    );
  }
});

Deno.test("a stream counts as one attempt at its first event, and one whose client disconnects as `client_disconnected`", async () => {
  const end = Promise.withResolvers<void>();
  await using first = startUpstream((_, index) =>
    index === 0 ? events(STREAMED.chat.join("")) : { body: "", before: end.promise }
  );
  await using gateway = startGateway(targets({ first: first.url }));
  const attempts = async (outcome: string) =>
    valueOf(await metricsOf(gateway), "sluice_upstream_attempts_total", {
      upstream: "first",
      model: "acme/one",
      outcome,
    });
  assertEquals(await ask(gateway, { stream: true }), 200);
  assertEquals(await attempts("success"), "1");
  const leaving = new AbortController();
  const pending = gateway.ask("chat", prompt("chat", { stream: true }), { signal: leaving.signal }).catch(() => {});
  await until("the second request", () => first.requests.length >= 2);
  leaving.abort();
  await pending;
  await eventually(async () => assertEquals(await attempts("client_disconnected"), "1"));
  end.resolve();
  assertEquals(valueOf(await metricsOf(gateway), "sluice_upstream_attempt_seconds_count", { upstream: "first" }), "1");
});

Deno.test("breaker changes are counted by new state", async () => {
  using time = simulateTime(1_800_000_000_000);
  let isWell = false;
  await using first = startUpstream(({ method }) =>
    isWell || method === "GET" ? json(WHOLE.chat) : json(errorBody("chat", "broken"), { status: 500 })
  );
  await using gateway = startGateway(targets({ first: first.url }), { breakers: true });
  for (let request = 0; request < 6; request++) {
    await ask(gateway);
    await time.pass(MINUTE_MS);
  }
  isWell = true;
  assertEquals(await ask(gateway), 200);
  const text = await metricsOf(gateway);
  const changes = (state: string) =>
    Number(valueOf(text, "sluice_breaker_changes_total", { upstream: "first", model: "m-first", state }));
  const logged = (event: string) => gateway.logs.filter((line) => line.event === event).length;
  assert(changes("open") >= 1);
  assertEquals(
    [changes("open"), changes("half_open"), changes("closed")],
    [logged("breaker_opened"), logged("breaker_half_open"), logged("breaker_closed")],
  );
});

Deno.test("target_failed has the status, the vendor's message without secrets and its request id, and no stack", async () => {
  const message = `Project acme has no access: ${UPSTREAM_KEY} ${"long ".repeat(100)}`;
  const cases: [transport: string, header: string, status: number][] = [
    ["http1", "x-request-id", 503],
    ["http1", "request-id", 403],
    ["fetch", "x-request-id", 500],
    ["fetch", "request-id", 401],
  ];
  for (const [transport, header, status] of cases) {
    for (const protocol of [...PROTOCOLS, "gemini"] as const) {
      const error = { message, type: "server_error", code: protocol === "gemini" ? status : "x", status: "INTERNAL" };
      await using first = startUpstream(() =>
        json({ type: "error", error }, {
          status,
          headers: { "content-type": "application/json", [header]: "req-7f3" },
        })
      );
      await using gateway = startGateway(oneModel(protocol, first.url, { transport }));
      await ask(gateway);
      const line = gateway.logs.find(({ event }) => event === "target_failed");
      const name = `${transport} ${protocol} ${status}`;
      assertEquals([line?.status, line?.vendor_request_id, line?.stack], [status, "req-7f3", undefined], name);
      const text = String(line?.vendor_message);
      assertEquals(text.startsWith("Project acme has no access: [key]"), true, `${name}: ${text}`);
      assert(text.length <= 300, name);
    }
  }
});

Deno.test("target_failed has no vendor facts if the upstream sent none, and rejects malformed ids", async () => {
  const answers: [script: ScriptedAnswer, expected: unknown[]][] = [
    [{ body: "<html>", status: 502, headers: { "content-type": "text/html" } }, [502, "HTML page", undefined]],
    [{ body: "<title> Under repair </title><p>text", headers: { "content-type": "text/html" } }, [
      200,
      "HTML page: Under repair",
      undefined,
    ]],
    [{ body: "<xml/>", status: 502 }, [502, undefined, undefined]],
    [{ body: "The answer" }, [undefined, undefined, undefined]],
    [json({ detail: "gone" }, { status: 500, headers: { "x-request-id": "a b" } }), [500, "gone", undefined]],
    [json({ error: "gone" }, { status: 500, headers: { "x-request-id": "x".repeat(201) } }), [500, "gone", undefined]],
    [json(WHOLE.chat, { cutAfterBytes: 10 }), [undefined, undefined, undefined]],
  ];
  for (const [script, expected] of answers) {
    await using first = startUpstream(() => script);
    await using gateway = startGateway(targets({ first: first.url }));
    await ask(gateway);
    const line = gateway.logs.find(({ event }) => event === "target_failed");
    assertEquals([line?.status, line?.vendor_message, line?.vendor_request_id], expected, String(script.body));
    assertEquals(line?.stack, undefined);
  }
});

Deno.test("/readyz and the admin health name a failing upstream, even at one request per minute", async () => {
  using time = simulateTime(1_800_000_000_000);
  let isWell = false;
  await using first = startUpstream(({ method }) =>
    isWell || method === "GET" ? json(WHOLE.chat) : json(errorBody("chat", "broken"), { status: 500 })
  );
  await using gateway = startGateway(targets({ first: first.url }), { breakers: true });
  const ready = async () => await (await fetch(`${gateway.url}/readyz`)).json();
  assertEquals(await ready(), { status: "ok" });
  for (let request = 0; request < 7; request++) {
    await ask(gateway);
    await time.pass(MINUTE_MS);
  }
  const message = "degraded: first answered 0 of its last 7 attempts";
  assertEquals(await ready(), { status: "degraded", message });
  assertEquals((await readiness(gateway.gateway)).message, message);
  await time.pass(60 * MINUTE_MS);
  assertEquals((await ready()).message, message);
  isWell = true;
  await ask(gateway);
  assertEquals(await ready(), { status: "ok" });
});

Deno.test("a breaker's gauge falls only after its target was tried", async () => {
  using time = simulateTime(1_800_000_000_000);
  let isBroken = true;
  const answered = Promise.withResolvers<void>();
  await using only = startUpstream(async ({ method }) => {
    if (method === "GET" || !isBroken) {
      if (method === "POST") await answered.promise;
      return json(method === "GET" ? { object: "list", data: [{ id: "m-only" }] } : WHOLE.chat);
    }
    return json(errorBody("chat", "broken"), { status: 500 });
  });
  await using gateway = startGateway(targets({ only: only.url }), { breakers: true });
  const gauge = async () =>
    valueOf(await metricsOf(gateway), "sluice_breaker_state", { upstream: "only", model: "m-only" });
  for (let minute = 0; minute < 8; minute++) {
    await ask(gateway);
    await time.pass(MINUTE_MS);
  }
  for (let minute = 0; minute < 5; minute++) {
    assertEquals(await gauge(), "3", `minute ${minute}`);
    await time.pass(MINUTE_MS);
  }
  // A failed trial does not change it.
  await ask(gateway);
  assertEquals(await gauge(), "3");
  await time.pass(MINUTE_MS);
  isBroken = false;
  const before = only.requests.length;
  const trial = ask(gateway);
  while (only.requests.length === before) await time.settle(5);
  assertEquals(await gauge(), "1");
  answered.resolve();
  assertEquals(await trial, 200);
  assertEquals(await gauge(), "0");
});

Deno.test("an entry has the vendor's request id, and the targets that were passed over with the reason", async () => {
  using time = simulateTime(1_800_000_000_000);
  await using first = startUpstream(() => json(errorBody("chat", "broken"), { status: 500 }));
  const answered = json(WHOLE.chat, { headers: { "x-request-id": "vendor-17" } });
  await using second = startUpstream(() => answered);
  await using third = startUpstream(() => json(errorBody("chat", "broken"), { status: 500 }));
  await using gateway = startGateway(targets({ first: first.url, second: second.url, third: third.url }), {
    breakers: true,
    now: () => time.now(),
  });
  const explained = async () => {
    const response = await gateway.ask("chat", prompt("chat"));
    await response.text();
    const found = await explainRequest(gateway.store.ledger, response.headers.get("x-request-id") ?? "");
    assert(found?.state === "ended");
    return found;
  };
  let last = await explained();
  // If another attempt failed, the list has the id.
  assertEquals(last.attempt_list.map(({ upstream, request_id }) => [upstream, request_id]), [["first", undefined], [
    "second",
    "vendor-17",
  ]]);
  assertEquals([last.skipped, last.upstream_request_id], [[], "vendor-17"]);
  for (let tries = 0; last.attempts > 1; tries++) {
    assert(tries < 10);
    await time.pass(1_000);
    last = await explained();
  }
  const [skipped] = last.skipped;
  assertEquals([last.attempt_list, last.upstream_request_id], [[], "vendor-17"]);
  // The third target is behind the one that answered.
  assertEquals(last.skipped.map(({ upstream, why }) => [upstream, why]), [["first", "open"]]);
  assertMatch(
    explanationText(last),
    /\nUpstream id: +vendor-17\n[^]*\nAttempts:\n {2}- first, acme\/one: not tried, its circuit breaker was open \(\d+(\.\d)? s left\)\n/,
  );
  assert((skipped?.wait_ms ?? 0) > 0);
});

Deno.test("an upstream without the key that it needs is out of use, even if it lists its models without one", async () => {
  await using host = startUpstream(({ method }) =>
    method === "GET" ? json({ object: "list", data: [] }) : json(errorBody("chat", "who"), { status: 401 })
  );
  const file = targets({ first: host.url }, { vendor: "vllm", api_key: undefined });
  await using gateway = startGateway(JSON.parse(JSON.stringify(file)), { breakers: true });
  await ask(gateway);
  await until("the log line", () => gateway.logs.some(({ event }) => event === "upstream_key_refused"));
  const { status, message } = await readiness(gateway.gateway);
  assertEquals([status, message?.includes("first")], ["degraded", true]);
});

Deno.test("an answer that breaks off is explained like an attempt that failed before", async () => {
  for (const protocol of PROTOCOLS) {
    const begun = STREAMED[protocol].slice(0, { chat: 3, responses: 5, messages: 4, gemini: 2 }[protocol]).join("");
    const error = JSON.stringify(errorBody(protocol, `Boom ${UPSTREAM_KEY}`));
    const plays: [body: ScriptedAnswer, message: RegExp, status: number | undefined][] = [
      [events(`${begun}event: error\ndata: ${error}\n\n`, { chunkBytes: begun.length }), /^Boom \S*$/, 200],
      [events(`${begun}cut`, { cutAfterBytes: begun.length }), /broke off/, undefined],
    ];
    for (const [answer, message, status] of plays) {
      await using first = startUpstream(() => ({
        ...answer,
        headers: { ...answer.headers, "x-request-id": "vendor-1" },
      }));
      await using gateway = startGateway(oneModel(protocol, first.url));
      const response = await gateway.ask(protocol, prompt(protocol, { stream: true }));
      assertEquals(response.status, 200, protocol);
      await response.text();
      await gateway.gateway.backgroundTasks.done();
      const id = response.headers.get("x-request-id") ?? "";
      const explanation = await explainRequest(gateway.store.ledger, id);
      assert(explanation?.state === "ended");
      const [attempt, ...others] = explanation.attempt_list;
      assertEquals([others, attempt?.outcome, attempt?.status], [[], "broken", status], protocol);
      assertEquals(attempt?.request_id, "vendor-1");
      assertMatch(attempt?.message ?? "", message);
      assertMatch(explanationText(explanation), /broke off its answer after \d+ ms \(/);
      const [line, ...more] = gateway.logs.filter(({ event }) => event === "target_failed");
      assertEquals(more, []);
      assertEquals([`req_${line?.request_id}`, line?.status], [id, status], protocol);
      assert(!JSON.stringify([explanation, line]).includes(UPSTREAM_KEY));
    }
  }
});

Deno.test("answers that begin and break off at once open the breaker, as those that break off later", async () => {
  const begun = STREAMED.chat.slice(0, 3).join("");
  const error = JSON.stringify(errorBody("chat", "Boom"));
  await using first = startUpstream(() => events(`${begun}event: error\ndata: ${error}\n\n`));
  await using gateway = startGateway(targets({ first: first.url }), { breakers: true });
  for (let request = 0; request < 5; request++) assertEquals(await ask(gateway, { stream: true }), 200);
  assertEquals(gateway.logs.filter(({ event }) => event === "breaker_opened").length, 1);
  assertEquals(await ask(gateway, { stream: true }), 503);
});

Deno.test("an attempt without an answer says why there is none", async () => {
  await using other = startUpstream(() => ({ status: 302, headers: { location: "http://other.example/" } }));
  const cases: [url: string, words: RegExp][] = [
    [`http://127.0.0.1:${CLOSED_PORT}`, /\("Cannot reach the model's upstream: connection refused"\)/],
    [other.url, /\(status 302\)/],
  ];
  for (const [url, words] of cases) {
    await using gateway = startGateway(targets({ first: url }));
    const response = await gateway.ask("chat", prompt("chat"));
    assertEquals(response.status, 502, await response.text());
    const found = await explainRequest(gateway.store.ledger, response.headers.get("x-request-id") ?? "");
    assert(found?.state === "ended");
    assertMatch(explanationText(found), words);
  }
});

Deno.test("an entry has the vendor's wait, and the client's output limit if the answer ended there", async () => {
  await using first = startUpstream(() =>
    json(errorBody("chat", "slow"), { status: 429, headers: { "retry-after": "30" } })
  );
  let finish_reason = "length";
  const message = { role: "assistant", content: "Hello there" };
  await using second = startUpstream(() => json({ ...WHOLE.chat, choices: [{ index: 0, message, finish_reason }] }));
  await using gateway = startGateway(targets({ first: first.url, second: second.url }));
  const explained = async () => {
    const response = await gateway.ask("chat", prompt("chat", { max_completion_tokens: 7 }));
    await response.text();
    const found = await explainRequest(gateway.store.ledger, response.headers.get("x-request-id") ?? "");
    assert(found?.state === "ended");
    return found;
  };
  const cut = await explained();
  assertEquals(cut.attempt_list.map(({ retry_after_ms }) => retry_after_ms), [30_000, undefined]);
  assertEquals([cut.ending, cut.requested_max_tokens], ["length", 7]);
  finish_reason = "stop";
  assertEquals((await explained()).requested_max_tokens, null);
});
