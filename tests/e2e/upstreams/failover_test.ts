import { assert, assertEquals, assertMatch } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { model, startGateway, upstream } from "../../support/gateway.ts";
import { errorBody, errorFrame, prompt, PROTOCOLS, STREAMED, SUCCESS, WHOLE } from "../../upstream/replies.ts";
import { startRawUpstream } from "../../upstream/raw.ts";
import { events, json, type ScriptedAnswer, startUpstream } from "../../upstream/mod.ts";
import { skipInQuick } from "../../support/skip.ts";
import { CLOSED_PORT } from "../../support/closed_port.ts";

/** A model with a first and a second target. */
function twoTargets(first: JsonObject, second: JsonObject): JsonObject {
  const targets = [
    { upstream: "first", model: "m-1", priority: 0 },
    { upstream: "second", model: "m-2", priority: 1 },
  ];
  return { upstreams: { first, second }, models: [model("acme/one", targets)] };
}

Deno.test("a failing target is skipped without the client noticing", async () => {
  const failures: [name: string, ScriptedAnswer][] = [
    ["408", json(errorBody("chat", "slow"), { status: 408 })],
    ["429", json(errorBody("chat", "slower"), { status: 429, headers: { "retry-after": "7" } })],
    ["429, soon over", json(errorBody("chat", "slower"), { status: 429, headers: { "retry-after": "1" } })],
    ["500", json(errorBody("chat", "broken"), { status: 500 })],
    ["502", { status: 502, headers: { "content-type": "text/html" }, body: "<html>" }],
    ["503", json(errorBody("chat", "busy"), { status: 503 })],
    ["504", json(errorBody("chat", "slow"), { status: 504 })],
    ["529", json(errorBody("chat", "busy"), { status: 529 })],
    ["its key refused", json(errorBody("chat", "who"), { status: 401 })],
    ["its model refused", json(errorBody("chat", "not you"), { status: 403 })],
    ["no credit", json(errorBody("chat", "pay", "insufficient_quota"), { status: 429 })],
    ["a redirect", { status: 302, headers: { location: "http://127.0.0.1:1/" }, body: "" }],
    ["garbage", { body: "<html>" }],
    ["a head without a body", json({}, { cutAfterBytes: 0 })],
    ["half an answer", json(WHOLE.chat, { cutAfterBytes: 40 })],
    ["an error as the first event", events(errorFrame("chat", "busy", "overloaded"))],
    ["an error after a start", events((STREAMED.chat[0] ?? "") + errorFrame("chat", "busy", "overloaded"))],
    ["a stream that ends at once", events("")],
    ["a stream that ends after a start", events(STREAMED.chat[0] ?? "")],
    ["half an event", events(STREAMED.chat.slice(0, 2).join("").slice(0, -20))],
    ["a stream that breaks off", events(STREAMED.chat.join(""), { cutAfterBytes: 10 })],
  ];
  const few = skipInQuick("Each failure of a target for every protocol of clients");
  for (const [place, client] of PROTOCOLS.entries()) {
    let script: ScriptedAnswer = { body: "" };
    await using first = startUpstream(() => script);
    await using second = startUpstream(({ body }) =>
      body.includes('"stream":true') ? events(STREAMED.messages.join("")) : json(WHOLE.messages)
    );
    await using gateway = startGateway(
      twoTargets(upstream("openai-compatible", first.url), upstream("anthropic", second.url)),
    );
    for (const [index, [name, played]] of failures.entries()) {
      if (few && index % PROTOCOLS.length !== place) continue;
      script = played;
      for (const stream of [true, false]) {
        const tried = first.requests.length;
        const response = await gateway.ask(client, prompt(client, { stream }));
        const text = await response.text();
        assertEquals(response.status, 200, `${name}: ${text}`);
        assertEquals(response.headers.get("retry-after"), null);
        assertEquals(answeredBy(response), ["second", "acme/one", "2"]);
        assertMatch(text, stream ? /Hello/ : /Hello there/);
        assert(!stream || text.includes(SUCCESS[client]), text);
        assertEquals(first.requests.length, tried + 1, name);
      }
    }
    assertEquals(JSON.parse(first.requests[0]?.body ?? "").model, "m-1");
    assertEquals(JSON.parse(second.requests[0]?.body ?? "").model, "m-2");
    for (const { attempts, upstream } of await gateway.store.ledger.entries({ after: 0, limit: 100 })) {
      assertEquals([attempts, upstream], [2, "second"]);
    }
  }
});

/** The headers that name the answering upstream. */
function answeredBy({ headers }: Response): (string | null)[] {
  return ["upstream", "model", "attempts"].map((name) => headers.get(`x-sluice-${name}`));
}

Deno.test("an unreachable upstream is retried once, a silent one is not, in every protocol", async () => {
  const silent = Promise.withResolvers<void>();
  await using mute = startUpstream(() => ({ body: "", before: silent.promise }));
  await using closing = startRawUpstream((connection) => Promise.resolve(connection.close()));
  await using second = startUpstream(({ body }) =>
    body.includes('"stream":true') ? events(STREAMED.chat.join("")) : json(WHOLE.chat)
  );
  const cases: [name: string, url: string, streams: boolean[], attempts: string][] = [
    ["refused", `http://127.0.0.1:${CLOSED_PORT}`, [true, false], "3"],
    ["closed before an answer", closing.url, [true, false], "2"],
    // A whole answer may take all the time there is.
    ["silent", mute.url, [true], "2"],
  ];
  for (const [name, url, streams, attempts] of cases) {
    const timeouts = { first_byte_ms: name === "silent" ? 100 : 60_000, total_ms: 60_000 };
    for (const client of PROTOCOLS) {
      for (const stream of streams) {
        // One each: repeats at a target that always fails are soon over.
        await using gateway = startGateway(
          twoTargets(upstream("openai-compatible", url, { timeouts }), upstream("openai-compatible", second.url)),
        );
        const response = await gateway.ask(client, prompt(client, { stream }));
        assertMatch(await response.text(), /Hello/);
        assertEquals(answeredBy(response), ["second", "acme/one", attempts], name);
      }
    }
  }
  silent.resolve();
});

Deno.test("dropped parameters are those of the answering target", async () => {
  await using first = startUpstream(() => json(errorBody("messages", "busy"), { status: 529 }));
  await using second = startUpstream(() => json(WHOLE.chat));
  await using gateway = startGateway(
    twoTargets(upstream("anthropic", first.url), upstream("openai-compatible", second.url)),
  );
  const response = await gateway.ask("chat", prompt("chat", { seed: 5, logit_bias: { 5: 1 } }));
  assertEquals([response.status, first.requests.length], [200, 1], await response.text());
  assertEquals(response.headers.get("x-sluice-dropped"), null);
});

Deno.test("a client error leads to no other target", async () => {
  const cases: [status: number, answer: number][] = [[400, 400], [413, 413], [422, 400]];
  for (const [status, answer] of cases) {
    await using first = startUpstream(() => json(errorBody("chat", "wrong"), { status }));
    await using second = startUpstream(() => json(WHOLE.chat));
    await using gateway = startGateway(
      twoTargets(upstream("openai-compatible", first.url), upstream("openai-compatible", second.url)),
      { breakers: true },
    );
    for (const client of PROTOCOLS) {
      for (const stream of [true, false]) {
        const response = await gateway.ask(client, prompt(client, { stream }));
        assertEquals([response.status, second.requests.length], [answer, 0], await response.text());
        assertEquals(answeredBy(response), ["first", "acme/one", "1"]);
      }
    }
    assertEquals(gateway.gateway.health.snapshot().map(({ state, samples }) => [state, samples])[0], ["closed", 0]);
  }
});

Deno.test("a target whose vendor has withdrawn the model leads to the next one, and stays closed", async () => {
  await using first = startUpstream(() => json(errorBody("chat", "no such model"), { status: 404 }));
  await using second = startUpstream(() => json(WHOLE.chat));
  await using gateway = startGateway(
    twoTargets(upstream("openai-compatible", first.url), upstream("openai-compatible", second.url)),
    { breakers: true },
  );
  for (const client of PROTOCOLS) {
    const response = await gateway.ask(client, prompt(client));
    assertEquals(response.status, 200, await response.text());
    assertEquals(answeredBy(response), ["second", "acme/one", "2"]);
  }
  assertEquals(first.requests.length, PROTOCOLS.length);
  assertEquals(gateway.gateway.health.snapshot().map(({ state, samples }) => [state, samples])[0], ["closed", 0]);
});

Deno.test("a request beyond an account's tokens per minute tries the next account, and pauses no target", async () => {
  const message = "Request too large for m in organization o on tokens per min (TPM): Limit 30000, Requested 45000.";
  await using first = startUpstream(({ body }) =>
    JSON.stringify(body).includes("huge")
      ? json(errorBody("chat", message, "rate_limit_exceeded"), { status: 429 })
      : json(WHOLE.chat)
  );
  await using second = startUpstream(() => json(errorBody("chat", message, "rate_limit_exceeded"), { status: 429 }));
  await using gateway = startGateway(
    twoTargets(upstream("openai-compatible", first.url), upstream("openai-compatible", second.url)),
    { breakers: true },
  );
  const huge = { messages: [{ role: "user", content: "huge" }] };
  const refused = await gateway.ask("chat", prompt("chat", huge));
  assertEquals([refused.status, second.requests.length], [413, 1], await refused.text());
  const response = await gateway.ask("chat", prompt("chat"));
  assertEquals(response.status, 200, await response.text());
  assertEquals(answeredBy(response), ["first", "acme/one", "1"]);
});

Deno.test("nothing is retried after the first event", async () => {
  for (const client of PROTOCOLS) {
    const frames = STREAMED.chat;
    await using first = startUpstream(() => events(frames.slice(0, 2).join("") + errorFrame("chat", "broken")));
    await using second = startUpstream(() => events(frames.join("")));
    await using gateway = startGateway(
      twoTargets(upstream("openai-compatible", first.url), upstream("openai-compatible", second.url)),
    );
    const response = await gateway.ask(client, prompt(client, { stream: true }));
    const text = await response.text();
    assert(text.includes("Hello") && /error|failed/.test(text), text);
    assertEquals(second.requests.length, 0);
  }
});

Deno.test("if every target fails, the last error is the answer", async () => {
  await using first = startUpstream(() => json(errorBody("chat", "broken"), { status: 500 }));
  await using second = startUpstream(() =>
    json(errorBody("chat", "slower"), { status: 429, headers: { "retry-after": "7" } })
  );
  await using gateway = startGateway(
    twoTargets(upstream("openai-compatible", first.url), upstream("openai-compatible", second.url)),
  );
  const response = await gateway.ask("chat", prompt("chat"));
  await response.body?.cancel();
  assertEquals([response.status, response.headers.get("retry-after")], [429, "7"]);
});

Deno.test("a model may have targets of every protocol, each with its own request", async () => {
  const answers: Record<string, ScriptedAnswer> = {
    "/v1/chat/completions": json(WHOLE.chat),
    "/v1/responses": json(WHOLE.responses),
    "/v1/messages": json(WHOLE.messages),
    "/v1beta/models/m:generateContent": json({
      candidates: [{ content: { role: "model", parts: [{ text: "Hello there" }] }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 2 },
    }),
  };
  let failing = "";
  await using server = startUpstream(({ path }) =>
    path === failing ? { status: 500, body: "" } : answers[path] ?? { status: 404, body: "" }
  );
  const targets = [
    { upstream: "openai", model: "m", protocol: "chat", priority: 0 },
    { upstream: "openai", model: "m", protocol: "responses", priority: 1 },
    { upstream: "anthropic", model: "m", priority: 2 },
    { upstream: "gemini", model: "m", priority: 3 },
  ];
  await using gateway = startGateway({
    upstreams: {
      openai: upstream("openai", server.url),
      anthropic: upstream("anthropic", server.url),
      gemini: { ...upstream("gemini", server.url), base_url: `${server.url}/v1beta` },
    },
    models: [model("acme/one", targets)],
    routing: { attempts: 4 },
  });
  for (const client of PROTOCOLS) {
    for (let rank = 0; rank < 4; rank++) {
      // A model of one target per protocol, the one at this rank first.
      const path = Object.keys(answers)[rank] ?? "";
      const paths = server.requests.length;
      failing = Object.keys(answers)[rank - 1] ?? "";
      const response = await gateway.ask(client, prompt(client));
      const text = await response.text();
      assertEquals(response.status, 200, text);
      assert(text.includes("Hello there"), text);
      if (rank <= 1) assertEquals(server.requests.slice(paths).at(-1)?.path, path);
    }
  }
  for (const path of Object.keys(answers).slice(0, 3)) answers[path] = { status: 503, body: "" };
  const tried = server.requests.length;
  const response = await gateway.ask("responses", prompt("responses"));
  assertEquals(response.status, 200, await response.text());
  assertEquals(server.requests.slice(tried).map(({ path }) => path), Object.keys(answers));
});

Deno.test("an upstream with the client's protocol is called in it, any other in its own", async () => {
  await using server = startUpstream(({ path }) => path === "/v1/responses" ? json(WHOLE.responses) : json(WHOLE.chat));
  const targets = [{ upstream: "one", model: "m" }];
  const requestsOf = async (file: JsonObject): Promise<(string | undefined)[]> => {
    await using gateway = startGateway({ upstreams: { one: file }, models: [model("acme/one", targets)] });
    const paths: (string | undefined)[] = [];
    for (const client of PROTOCOLS) {
      const response = await gateway.ask(client, prompt(client));
      assertEquals(response.status, 200, await response.text());
      paths.push(server.requests.at(-1)?.path.slice("/v1".length));
    }
    return paths;
  };
  assertEquals(await requestsOf(upstream("openai", server.url)), [
    "/chat/completions",
    "/responses",
    "/responses",
    "/responses",
  ]);
  assertEquals(
    await requestsOf(upstream("openai", server.url, { protocols: ["chat"] })),
    Array(PROTOCOLS.length).fill("/chat/completions"),
  );
  assertEquals(
    await requestsOf(upstream("openai-compatible", server.url)),
    Array(PROTOCOLS.length).fill("/chat/completions"),
  );
  assertEquals(
    await requestsOf(upstream("openai-compatible", server.url, { protocols: ["chat", "responses"] })),
    ["/chat/completions", "/responses", "/chat/completions", "/chat/completions"],
  );
});
