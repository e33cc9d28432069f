import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { sharedGateway } from "./gateway.ts";
import { type Body, parsed, post, readBody, readMessages, VERSION } from "./sse.ts";
import { ECHO } from "./upstreams.ts";

const MAIN = "main-key-of-the-tests";
const OTHER = "other-key-of-the-tests";
const SMALL = "acme/small";

const gateway = sharedGateway({
  config: {
    groups: { main: {}, other: { models: ["acme/*"] } },
    models: [{
      id: SMALL,
      created: 1_700_000_000,
      context_length: 60,
      pricing: { prompt: "0", completion: "0" },
      targets: [{ upstream: "embedded", model: "echo" }],
    }],
  },
  keys: { main: MAIN, other: OTHER },
});

const MESSAGES: Body = { model: ECHO, max_tokens: 10, messages: [{ role: "user", content: "Hello" }] };

Deno.test("/api/hello needs no key", async () => {
  for (const method of ["HEAD", "GET"]) {
    const response = await fetch(`${gateway().url}/anthropic/api/hello`, { method });
    assertEquals(response.status, 200);
    await response.body?.cancel();
  }
});

Deno.test("a WebSocket upgrade is refused with 426 if WebSockets are disabled, whatever the key", async () => {
  const { hostname, port } = new URL(gateway().url);
  for (const key of ["", `authorization: Bearer ${MAIN}\r\n`]) {
    using connection = await Deno.connect({ hostname, port: Number(port) });
    const lines = [
      "GET /v1/chat/completions HTTP/1.1",
      `host: ${hostname}`,
      "connection: Upgrade",
      "upgrade: websocket",
      "sec-websocket-version: 13",
      "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    await connection.write(new TextEncoder().encode(`${lines.join("\r\n")}\r\n${key}\r\n`));
    const bytes = new Uint8Array(4096);
    const size = await connection.read(bytes);
    assertMatch(new TextDecoder().decode(bytes.subarray(0, size ?? 0)), /^HTTP\/1\.1 426 /);
  }
});

Deno.test("messages accepts both versions of its protocol, and no other", async () => {
  const cases: [Record<string, string>, number][] = [
    [{ "anthropic-version": "2023-06-01" }, 200],
    [{ "anthropic-version": "2026-10-21" }, 200],
    [{ "anthropic-version": "2022-01-01" }, 400],
    [{}, 400],
  ];
  for (const path of ["/anthropic/v1/messages", "/anthropic/v1/messages/count_tokens"]) {
    for (const [headers, status] of cases) {
      const { max_tokens: _, ...counted } = MESSAGES;
      const body = path.endsWith("count_tokens") ? counted : MESSAGES;
      const response = await post(gateway(), path, body, headers);
      const answer = await response.json();
      assertEquals(response.status, status, `${path} ${JSON.stringify(headers)}`);
      if (status === 400) assertStringIncludes(answer.error.message, "anthropic-version");
    }
  }
});

Deno.test("messages accepts either credential, and x-api-key takes precedence", async () => {
  const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
  const cases: [Record<string, string>, number][] = [
    [{ "x-api-key": MAIN }, 200],
    [bearer(MAIN), 200],
    [{ "x-api-key": MAIN, ...bearer(MAIN) }, 200],
    // The other key is real, but its group may not use the model.
    [{ "x-api-key": MAIN, ...bearer(OTHER) }, 200],
    [{ "x-api-key": OTHER, ...bearer(MAIN) }, 403],
    [{ "x-api-key": MAIN, ...bearer("nobody") }, 200],
    [{ "x-api-key": "nobody", ...bearer(MAIN) }, 401],
    [{}, 401],
  ];
  for (const [headers, status] of cases) {
    const response = await fetch(`${gateway().url}/anthropic/v1/messages`, {
      method: "POST",
      headers: { "content-type": "application/json", ...VERSION, ...headers },
      body: JSON.stringify(MESSAGES),
    });
    await response.body?.cancel();
    assertEquals(response.status, status, Object.keys(headers).join());
  }
});

Deno.test("the compatible endpoints accept only a bearer token", async () => {
  const body = { model: ECHO, input: "Hello" };
  const cases = [[{ "x-api-key": MAIN, authorization: "" }, 401], [{}, 200], [{ "x-api-key": "stray" }, 200]] as const;
  for (const [headers, status] of cases) {
    const response = await post(gateway(), "/v1/responses", body, headers);
    await response.body?.cancel();
    assertEquals(response.status, status);
  }
});

Deno.test("truncation drops the oldest turns, or the request is refused", async () => {
  const words = "word ".repeat(80);
  const input = [
    { role: "user", content: words },
    { role: "assistant", content: "Yes." },
    { role: "user", content: "And now?" },
  ];
  const body = { model: SMALL, input };
  for (const extra of [{}, { truncation: "disabled" }]) {
    for (const stream of [false, true]) {
      const response = await post(gateway(), "/v1/responses", { ...body, ...extra, stream });
      const { error } = await response.json();
      assertEquals([response.status, error.code, error.param], [400, "context_length_exceeded", "input"]);
    }
  }
  const answer = await readBody(await post(gateway(), "/v1/responses", { ...body, truncation: "auto" }));
  assertEquals([answer.status, answer.truncation], ["completed", "auto"]);
  const { input_tokens } = answer.usage as { input_tokens: number };
  assertEquals(input_tokens > 0 && input_tokens <= 30, true, String(input_tokens));
  const last = { model: SMALL, input: words, truncation: "auto" };
  const refused = await post(gateway(), "/v1/responses", last);
  assertEquals([refused.status, (await refused.json()).error.code], [400, "context_length_exceeded"]);
});

Deno.test("every protocol reports an exceeded context in its own terms", async () => {
  const messages = [{ role: "user", content: "word ".repeat(100) }];
  const chat = await post(gateway(), "/v1/chat/completions", { model: SMALL, messages });
  const { error } = await chat.json();
  assertEquals([chat.status, error.code, error.param], [400, "context_length_exceeded", "messages"]);
  const native = await post(gateway(), "/anthropic/v1/messages", { model: SMALL, max_tokens: 10, messages }, VERSION);
  const body = await native.json();
  assertEquals([native.status, body.type, body.error.type], [400, "error", "invalid_request_error"]);
  // Claude Code compacts the conversation when it reads this.
  assertMatch(body.error.message, /^prompt is too long: \d+ tokens > 60 maximum/);
});

Deno.test("errors before a stream are plain JSON, even for streaming requests", async () => {
  const cases: [string, Body, string][] = [
    ["/v1/chat/completions", { model: ECHO, stream: true }, "error"],
    ["/v1/responses", { model: ECHO, stream: true, input: 7 }, "error"],
    ["/anthropic/v1/messages", { ...MESSAGES, stream: true, messages: [] }, "type,error,request_id"],
  ];
  for (const [path, body, members] of cases) {
    const response = await post(gateway(), path, body, VERSION);
    assertEquals(response.status, 400, path);
    assertMatch(response.headers.get("content-type") ?? "", /^application\/json/);
    assertEquals(Object.keys(await response.json()).join(), members);
  }
});

Deno.test("unknown paths and methods have the error body of their prefix", async () => {
  const cases: [string, string, number, string][] = [
    ["GET", "/v1/nothing", 404, "error"],
    ["GET", "/v1/chat/completions", 405, "error"],
    ["GET", "/anthropic/v1/nothing", 404, "type,error,request_id"],
    ["DELETE", "/anthropic/v1/messages", 405, "type,error,request_id"],
  ];
  for (const [method, path, status, members] of cases) {
    const response = await fetch(`${gateway().url}${path}`, { method, headers: { authorization: `Bearer ${MAIN}` } });
    assertEquals([response.status, Object.keys(await response.json()).join()], [status, members], path);
  }
});

Deno.test("a configured model streams under its own id in every protocol", async () => {
  const messages = [{ role: "user", content: "Hello" }];
  const chat = await readMessages(
    await post(gateway(), "/v1/chat/completions", { model: SMALL, messages, stream: true }),
  );
  assertEquals(parsed(chat.slice(0, -1)).map(({ model }) => model), chat.slice(0, -1).map(() => SMALL));
  const responses = await readMessages(
    await post(gateway(), "/v1/responses", { model: SMALL, input: "Hello", stream: true }),
  );
  assertEquals((parsed(responses.slice(0, 1))[0]?.response as Body).model, SMALL);
  const body = { model: SMALL, max_tokens: 10, messages, stream: true };
  const native = await readMessages(await post(gateway(), "/anthropic/v1/messages", body, VERSION));
  assertEquals((parsed(native)[0]?.message as Body).model, SMALL);
});
