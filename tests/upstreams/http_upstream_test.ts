import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Protocol } from "../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import { oneModel, startGateway, UPSTREAM_KEY } from "../support/gateway.ts";
import { errorBody, prompt, PROTOCOLS, STREAMED, SUCCESS, WHOLE } from "../upstream/replies.ts";
import { events, json, startUpstream } from "../upstream/mod.ts";
import { skipInQuick } from "../support/skip.ts";

/** Client and upstream protocol: relayed where they are the same, translated otherwise. */
const PAIRS: [client: Protocol, upstream: Protocol][] = PROTOCOLS.flatMap((client) =>
  PROTOCOLS.map((upstream): [Protocol, Protocol] => [client, upstream])
);

const FEW = skipInQuick("Most answers of upstreams for each pair of protocols");

/** Checks that an answer is an error in its protocol's shape, and that it reveals nothing. */
async function assertError(
  response: Response,
  { protocol, status, type }: { protocol: Protocol; status: number; type?: string },
): Promise<string> {
  const text = await response.text();
  assertEquals(response.status, status, text);
  assertEquals(response.headers.get("content-type"), "application/json");
  const body = JSON.parse(text);
  if (protocol === "messages") {
    assertEquals(Object.keys(body), ["type", "error", "request_id"], text);
    assertEquals([body.type, typeof body.error.message], ["error", "string"], text);
  } else {
    assertEquals(Object.keys(body), ["error"], text);
    const names = protocol === "gemini" ? ["code", "message", "status"] : ["code", "message", "param", "type"];
    assertEquals(Object.keys(body.error).filter((name) => name !== "details").sort(), names, text);
  }
  // Google's names of errors are by status.
  if (type !== undefined && protocol !== "gemini") assertEquals(body.error.type, type, text);
  assert(!text.includes(UPSTREAM_KEY) && !text.includes("127.0.0.1"), text);
  return body.error.message;
}

Deno.test("upstream statuses become client errors, and a refused key is never the client's fault", async () => {
  const cases: [upstream: number, openai: number, anthropic: number, openaiType: string, anthropicType: string][] = [
    [400, 400, 400, "invalid_request_error", "invalid_request_error"],
    [401, 502, 502, "server_error", "api_error"],
    [403, 502, 502, "server_error", "api_error"],
    [404, 404, 404, "invalid_request_error", "not_found_error"],
    [408, 504, 504, "server_error", "timeout_error"],
    [413, 413, 413, "invalid_request_error", "request_too_large"],
    [422, 400, 400, "invalid_request_error", "invalid_request_error"],
    [429, 429, 429, "rate_limit_error", "rate_limit_error"],
    [500, 502, 502, "server_error", "api_error"],
    [503, 503, 529, "server_error", "overloaded_error"],
    [529, 503, 529, "server_error", "overloaded_error"],
  ];
  for (const [pair, [client, upstream]] of PAIRS.entries()) {
    let status = 0;
    await using server = startUpstream(() => json(errorBody(upstream, `refused, key ${UPSTREAM_KEY}`), { status }));
    await using gateway = startGateway(oneModel(upstream, server.url));
    for (const [index, [from, openai, anthropic, openaiType, anthropicType]] of cases.entries()) {
      // Only Anthropic has it.
      if (from === 529 && upstream === "gemini") continue;
      if (FEW && (pair + index) % 2 > 0) continue;
      status = from;
      for (const stream of FEW ? [(pair + index) % 4 === 0] : [false, true]) {
        const response = await gateway.ask(client, prompt(client, { stream }));
        await assertError(response, {
          protocol: client,
          status: client === "messages" ? anthropic : openai,
          type: client === "messages" ? anthropicType : openaiType,
        });
      }
    }
  }
});

Deno.test("the upstream's retry-after reaches the client", async () => {
  const cases: [Record<string, string>, seconds: string | null][] = [
    [{ "retry-after": "7" }, "7"],
    [{ "retry-after-ms": "1500" }, "2"],
    [{ "retry-after": "7", "retry-after-ms": "1500" }, "2"],
    [{ "retry-after": "-1" }, null],
    // A daily limit asks for several hours, which count as one hour.
    [{ "retry-after": "86400" }, "3600"],
    [{ "retry-after-ms": "90000000" }, "3600"],
    [{ "retry-after": "soon" }, null],
    [{ "retry-after": "Wed, 21 Oct 2015 07:28:00 GMT" }, null],
  ];
  for (const protocol of PROTOCOLS) {
    let headers: Record<string, string> = {};
    await using server = startUpstream(() => json(errorBody(protocol, "slower"), { status: 429, headers }));
    await using gateway = startGateway(oneModel(protocol, server.url));
    for (const [sent, seconds] of cases) {
      headers = { "content-type": "application/json", ...sent };
      const response = await gateway.ask(protocol, prompt(protocol));
      await response.body?.cancel();
      assertEquals(response.headers.get("retry-after"), seconds, JSON.stringify(sent));
    }
  }
});

Deno.test("an upstream that forbids a retry is believed after the last target", async () => {
  for (const protocol of PROTOCOLS) {
    let headers: Record<string, string> = {};
    let status = 0;
    await using server = startUpstream(() => json(errorBody(protocol, "slower"), { status, headers }));
    await using gateway = startGateway(oneModel(protocol, server.url));
    for (status of [429, 500, 503]) {
      for (const [sent, received] of [["false", "false"], ["true", null], [undefined, null]] as const) {
        headers = { "content-type": "application/json", ...(sent !== undefined && { "x-should-retry": sent }) };
        const response = await gateway.ask(protocol, prompt(protocol));
        await response.body?.cancel();
        assertEquals(response.headers.get("x-should-retry"), received, `${protocol} ${status} ${sent}`);
      }
    }
  }
});

Deno.test("upstream redirects are never followed", async () => {
  await using trap = startUpstream(() => json({ caught: true }));
  for (const protocol of PROTOCOLS) {
    let status = 0;
    await using server = startUpstream(() => ({ status, headers: { location: `${trap.url}/v1/x` }, body: "moved" }));
    await using gateway = startGateway(oneModel(protocol, server.url));
    for (status of [300, 301, 302, 303, 307, 308]) {
      for (const stream of [false, true]) {
        await assertError(await gateway.ask(protocol, prompt(protocol, { stream })), { protocol, status: 502 });
      }
    }
  }
  assertEquals(trap.requests.length, 0);
});

Deno.test("the client's answer ends although the upstream keeps the stream open", async () => {
  for (const [client, upstream] of [["chat", "chat"], ["messages", "responses"]] as const) {
    const forever = Promise.withResolvers<void>();
    const ends = STREAMED[upstream].join("");
    await using server = startUpstream(() =>
      events(`${ends}: more\n\n`, { chunkBytes: new TextEncoder().encode(ends).length, beforeLast: forever.promise })
    );
    await using gateway = startGateway(oneModel(upstream, server.url));
    const response = await gateway.ask(client, prompt(client, { stream: true }));
    assert((await response.text()).includes(SUCCESS[client]));
    // The client waits only briefly for the rest.
    await server.requests[0]?.gone;
    forever.resolve();
  }
});

/** A conversation with a signature that the vendor no longer accepts. */
const SIGNED = [
  { role: "user", content: "a" },
  { role: "assistant", content: [{ type: "thinking", thinking: "t", signature: "old" }, { type: "text", text: "b" }] },
  { role: "user", content: "c" },
];

Deno.test("a signature that the vendor rejects drops the reasoning, not the conversation", async () => {
  const words = "messages.1.content.0: Invalid `signature` in `thinking` block";
  await using server = startUpstream((request) =>
    request.body.includes('"thinking":"t"')
      ? json(errorBody("messages", words, "invalid_request_error"), { status: 400 })
      : json(WHOLE.messages)
  );
  await using gateway = startGateway(oneModel("messages", server.url));
  const response = await gateway.ask("messages", prompt("messages", { messages: SIGNED }));
  assertEquals(response.status, 200, await response.text());
  assertEquals(response.headers.get("x-sluice-dropped"), "messages.thinking");
  assertEquals(server.requests.length, 2);
  const second: JsonObject = JSON.parse(server.requests[1]?.body ?? "");
  assertEquals(second.messages, [
    { role: "user", content: "a" },
    { role: "assistant", content: "b" },
    { role: "user", content: "c" },
  ]);

  const plain = await gateway.ask(
    "messages",
    prompt("messages", { messages: [{ role: "user", content: '"thinking":"t"' }] }),
  );
  await plain.body?.cancel();
  assertEquals([plain.status, server.requests.length], [200, 3]);
});

Deno.test("a signature error is retried at most once", async () => {
  await using server = startUpstream(() =>
    json(errorBody("messages", "Invalid `signature` in `thinking` block", "invalid_request_error"), { status: 400 })
  );
  await using gateway = startGateway(oneModel("messages", server.url));
  await assertError(await gateway.ask("messages", prompt("messages", { messages: SIGNED })), {
    protocol: "messages",
    status: 400,
  });
  assertEquals(server.requests.length, 2);
});

Deno.test("names of dropped parameters fit into a header", async () => {
  await using server = startUpstream(() => json(WHOLE.messages));
  await using gateway = startGateway(oneModel("messages", server.url));
  const odd = await gateway.ask(
    "chat",
    prompt("chat", { "na\u00efve \u2192\r\nx-injected: 1,2": 1, "\ud800": 1, logit_bias: { 1: 1 } }),
  );
  assertEquals(odd.status, 200, await odd.text());
  assertEquals(odd.headers.get("x-injected"), null);
  assertMatch(odd.headers.get("x-sluice-dropped") ?? "", /na%C3%AFve%20%E2%86%92%0D%0Ax-injected:%201%2C2/);

  const many = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`x_unknown_${index}`, 1]));
  const long = await gateway.ask("chat", prompt("chat", many));
  assertEquals(long.status, 200, await long.text());
  assertMatch(long.headers.get("x-sluice-dropped") ?? "", /^x_unknown_0, x_unknown_1, .*, \.\.\.$/);
});

Deno.test("a long conversation reaches every upstream unchanged, from every protocol", async () => {
  const reported = ["One", "two", "three"].map((word) => `${word} "said" C:\\temp\n\u007f/ 字😀\u2028 `.repeat(60));
  const turns = reported.map((content, index) => ({ role: index === 1 ? "assistant" : "user", content }));
  const textsOf = (value: unknown): string[] =>
    typeof value === "string"
      ? [value]
      : typeof value === "object" && value !== null
      ? Object.values(value).flatMap(textsOf)
      : [];
  for (const [client, protocol] of PAIRS) {
    await using server = startUpstream(() => json(WHOLE[protocol]));
    await using gateway = startGateway(oneModel(protocol, server.url));
    const contents = turns.map(({ role, content }) => ({
      role: role === "user" ? role : "model",
      parts: [{ text: content }],
    }));
    const conversation = {
      chat: { messages: turns },
      responses: { input: turns },
      messages: { messages: turns },
      gemini: { contents },
    };
    const body = JSON.stringify(prompt(client, conversation[client]));
    // The second spelling is another one than the gateway's.
    for (const spelled of [body, body.replaceAll("/", "\\/")]) {
      const response = await gateway.ask(client, spelled);
      assertEquals(response.status, 200, await response.text());
      const sent = server.requests.at(-1)?.body ?? "";
      const value = JSON.parse(sent);
      assertEquals(textsOf(value).filter((text) => text.length > 100), reported, `${client} to ${protocol}`);
      if (client !== protocol) assertEquals(sent, JSON.stringify(value), `${client} to ${protocol}`);
    }
  }
});
