import { assert, assertEquals, assertMatch } from "@std/assert";
import { type Body, post, VERSION } from "./sse.ts";
import { ECHO, sharedPlainGateway } from "./upstreams.ts";

const gateway = sharedPlainGateway();

const CHAT: Body = { model: ECHO, messages: [{ role: "user", content: "Hello there" }], stream: true };
const RESPONSES: Body = { model: ECHO, input: "Hello there", stream: true };
const MESSAGES: Body = {
  model: ECHO,
  max_tokens: 2000,
  messages: [{ role: "user", content: "Hello there" }],
  stream: true,
};

Deno.test("streams are neither cached nor buffered, and have a request id", async () => {
  const cases: [string, Body][] = [
    ["/v1/chat/completions", CHAT],
    ["/v1/responses", RESPONSES],
    ["/anthropic/v1/messages", MESSAGES],
  ];
  for (const [path, body] of cases) {
    const response = await post(gateway(), path, body, VERSION);
    assertEquals(response.headers.get("cache-control"), "no-cache", path);
    assertEquals(response.headers.get("content-encoding"), null, path);
    assertMatch(response.headers.get("x-request-id") ?? "", /^req_./);
    const native = path.startsWith("/anthropic");
    assertEquals(response.headers.get("request-id"), native ? response.headers.get("x-request-id") : null);
    await response.body?.cancel();
  }
});

Deno.test("every write of a stream consists of whole events", async () => {
  const { url, key } = gateway();
  const { hostname, port } = new URL(url);
  const body = JSON.stringify({ ...CHAT, messages: [{ role: "user", content: "one two three ".repeat(200) }] });
  using connection = await Deno.connect({ hostname, port: Number(port) });
  const head = [
    "POST /v1/chat/completions HTTP/1.1",
    `host: ${hostname}`,
    `authorization: Bearer ${key}`,
    "content-type: application/json",
    `content-length: ${body.length}`,
    "connection: close",
  ];
  await connection.write(new TextEncoder().encode(`${head.join("\r\n")}\r\n\r\n${body}`));
  const text = await new Response(connection.readable).text();
  // HTTP's own chunks are the writes: their sizes are on the wire.
  let rest = text.slice(text.indexOf("\r\n\r\n") + 4);
  let chunks = 0;
  for (let size = parseInt(rest, 16); size > 0; size = parseInt(rest, 16)) {
    const from = rest.indexOf("\r\n") + 2;
    assertMatch(rest.slice(from, from + size), /^(data: .+\n\n)+$/);
    rest = rest.slice(from + size + 2);
    chunks++;
  }
  assert(chunks > 100, `${chunks} chunks`);
});
