/** WebSockets on `/v1/responses`: the same events as over HTTP, one request per message. */
import { assert, assertEquals, assertLess, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { createDrain } from "../../../lib/server/drain.ts";
import { oneModel, startGateway, type TestGateway } from "../../support/gateway.ts";
import { prompt, PROTOCOLS, STREAMED } from "../../upstream/replies.ts";
import { events, type FakeUpstream, startUpstream } from "../../upstream/mod.ts";
import { openSocket } from "./sockets.ts";
import { pause, until } from "../../support/soon.ts";

function chatUpstream(): FakeUpstream {
  return startUpstream(() => events(STREAMED.chat.join("")));
}

/** Headers of a complete handshake besides `Upgrade`. */
const HANDSHAKE = ["connection: Upgrade", "sec-websocket-version: 13", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="];

/** Status of an upgrade. */
async function upgradeStatus(gateway: TestGateway, key: string, handshake = HANDSHAKE): Promise<number> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port: gateway.port });
  const lines = [
    "GET /v1/responses HTTP/1.1",
    "host: localhost",
    "upgrade: websocket",
    ...handshake,
    `authorization: Bearer ${key}`,
  ];
  await connection.write(new TextEncoder().encode(`${lines.join("\r\n")}\r\n\r\n`));
  const bytes = new Uint8Array(4096);
  const size = await connection.read(bytes);
  return Number(/^HTTP\/1\.1 (\d+)/.exec(new TextDecoder().decode(bytes.subarray(0, size ?? 0)))?.[1]);
}

/** Without the ids that each request has of its own. */
function withoutIds(messages: string[]): string[] {
  return messages.map((message) => message.replaceAll(/resp_[A-Za-z0-9]+|(?<=_)[A-Za-z0-9]{20,}/g, "ID"));
}

for (const protocol of PROTOCOLS) {
  Deno.test(`messages equal the event data over HTTP byte for byte: ${protocol}`, async () => {
    await using server = startUpstream(() => events(STREAMED[protocol].join("")));
    await using gateway = startGateway(oneModel(protocol, server.url));
    const request = { input: [{ role: "user", content: "Grüße" }], metadata: { a: "1" }, temperature: 0.5 };
    const streamed = await (await gateway.ask("responses", prompt("responses", { ...request, stream: true }))).text();
    const data = [...streamed.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => data).filter((data) =>
      data !== "[DONE]"
    );
    using socket = await openSocket(gateway);
    socket.send(request);
    const messages = await socket.answer();
    assert(messages.length > 5);
    assertEquals(withoutIds(messages), withoutIds(data));
    const [http, ws] = server.requests.map(({ body }) => body);
    assertEquals(ws, http);
    // A second answer over the same connection, with the name of its stream.
    socket.send({ ...request, stream_id: "one" });
    const named = await socket.answer();
    assertEquals(withoutIds(named.map((text) => text.replace(/,"stream_id":"one"}$/, "}"))), withoutIds(messages));
    assert(named.every((text) => JSON.parse(text).stream_id === "one"));
  });
}

Deno.test("an unstored response can be continued on its own connection", async () => {
  await using server = chatUpstream();
  await using gateway = startGateway(oneModel("chat", server.url));
  using socket = await openSocket(gateway);
  using other = await openSocket(gateway);
  const first = await socket.ask({ store: false, input: "one" });
  assertEquals([first.store, first.status], [false, "completed"]);
  const next = { store: false, previous_response_id: first.id, input: "two" };
  const second = await socket.ask(next);
  assertEquals(second.previous_response_id, first.id);
  await socket.ask({ store: false, previous_response_id: second.id, input: [{ role: "user", content: "three" }] });
  const texts = server.requests[2]?.json.messages.map(({ content }: JsonObject) => content);
  assertEquals(texts, ["one", "Hello thére 🙂", "two", "Hello thére 🙂", "three"]);
  const refused = await other.ask(next);
  assertEquals([refused.type, refused.status, refused.error.code], ["error", 400, "previous_response_not_found"]);
  const plain = await gateway.ask("responses", prompt("responses", next));
  assertEquals(plain.status, 400, await plain.text());
  // Stored responses are known to every connection of the key.
  const stored = await other.ask({ input: "stored" });
  assertEquals((await socket.ask({ previous_response_id: stored.id, input: "Go" })).status, "completed");
  // A stored response does not depend on those of its connection.
  const { id } = await socket.ask({ previous_response_id: second.id, input: "four" });
  const { recall } = gateway.gateway;
  const before = recall.bytes;
  socket.close();
  await socket.closed;
  await until("expiry", () => recall.bytes < before);
  const last = prompt("responses", { stream: true, previous_response_id: id, input: "five" });
  const continued = await gateway.ask("responses", last);
  assertEquals(continued.status, 200, await continued.text());
  assertEquals(server.requests.at(-1)?.json.messages.length, 7);
});

Deno.test("a warm-up returns an id to continue from, calls no model and leaves no entry", async () => {
  await using server = chatUpstream();
  await using gateway = startGateway(oneModel("chat", server.url));
  using socket = await openSocket(gateway);
  socket.send({ generate: false, store: false, instructions: "Be kind", input: [{ role: "user", content: "one" }] });
  const messages = (await socket.answer()).map((message) => JSON.parse(message));
  assertEquals(messages.map(({ type }) => type), ["response.created", "response.in_progress", "response.completed"]);
  const { response } = messages[2];
  assertEquals([response.status, response.output, response.usage.total_tokens], ["completed", [], 0]);
  await socket.ask({ store: false, instructions: "Be kind", previous_response_id: response.id, input: [] });
  const empty = await socket.ask({ generate: false, store: false, input: [] });
  await socket.ask({ store: false, previous_response_id: empty.id, input: "two" });
  socket.send('{"type":"response.create","model":"acme/one","generate":false,"store":false,"input":[ ]}');
  const spaced = JSON.parse((await socket.answer()).at(-1) ?? "").response;
  await socket.ask({ store: false, previous_response_id: spaced.id, input: "three" });
  assertEquals(server.requests.map(({ json }) => json.messages.at(-1).content), ["one", "two", "three"]);
  const answered = gateway.requestLines.filter(({ status }) => status === 200);
  const entries = await gateway.store.ledger.entries({ after: 0, limit: 100 });
  assertEquals([answered.length, entries.length], [6, 3]);
  const unknown = await socket.ask({ generate: false, model: "acme/none", input: "a" });
  assertEquals([unknown.status, unknown.error.code], [404, "model_not_found"]);
});

Deno.test("messages of one stream are answered in turn, streams concurrently", async () => {
  const first = Promise.withResolvers<void>();
  const never = new Promise<void>(() => {});
  const waits: Record<string, Promise<void>> = { slow: first.promise, held: never };
  await using server = startUpstream(({ json }) => {
    const before = waits[json.messages[0].content];
    return events(STREAMED.chat.join(""), before && { before });
  });
  await using gateway = startGateway(oneModel("chat", server.url));
  using socket = await openSocket(gateway);
  for (const input of ["slow", "second"]) socket.send({ input, stream_id: "a" });
  socket.send({ input: "third", stream_id: "b" });
  const streams = (await socket.answer()).map((message) => JSON.parse(message).stream_id);
  assertEquals(new Set(streams), new Set(["b"]));
  first.resolve();
  await socket.answer();
  await socket.answer();
  assertEquals(server.requests.map(({ json }) => json.messages[0].content), ["slow", "third", "second"]);
  for (let stream = 0; stream < 8; stream++) socket.send({ input: "held", stream_id: `s${stream}` });
  socket.send({ input: "a", stream_id: "s8" });
  const error = JSON.parse(await socket.message());
  assertEquals([error.status, error.stream_id], [400, "s8"]);
  assertStringIncludes(error.error.message, "8 are running");
});

Deno.test("messages after a long one wait until it is read, even if it is invalid", async () => {
  await using server = chatUpstream();
  await using gateway = startGateway(oneModel("chat", server.url));
  using socket = await openSocket(gateway);
  const long = '"\\'.repeat(600_000);
  for (const input of [long, "second", "third"]) socket.send({ input });
  for (let answer = 0; answer < 3; answer++) await socket.answer();
  assertEquals(server.requests.map(({ json }) => json.messages[0].content), [long, "second", "third"]);
  socket.send(`{"type":"response.create","input":"${"x".repeat(1_000_000)}`);
  assertStringIncludes(await socket.message(), "Cannot read the message as JSON");
});

Deno.test("each message is authenticated, limited and entered separately", async () => {
  await using server = chatUpstream();
  const groups = { default: { key_limits: { requests_per_minute: 2 } } };
  await using gateway = startGateway({ ...oneModel("chat", server.url), groups });
  const key = await gateway.addKey();
  using socket = await openSocket(gateway, key.key);
  for (let turn = 0; turn < 2; turn++) assertEquals((await socket.ask({ input: "a" })).status, "completed");
  const limited = await socket.ask({ input: "a" });
  assertEquals([limited.status, limited.error.type], [429, "requests"]);
  assertMatch(limited.headers["retry-after"], /^\d+$/);
  assertEquals(limited.error.headers, limited.headers);
  const lines = gateway.requestLines.filter(({ status }) => status === 200);
  assertEquals(lines.map(({ key_id }) => key_id), [key.id, key.id]);
  assertEquals(new Set(lines.map(({ request_id }) => request_id)).size, 2);
  await gateway.store.keys.revoke(key.id, 0);
  const revoked = await socket.ask({ input: "a" });
  assertEquals([revoked.status, revoked.error.code], [401, "invalid_api_key"]);
});

Deno.test("closing the connection cancels its requests", async () => {
  const never = new Promise<void>(() => {});
  await using server = startUpstream(() => events(STREAMED.chat.join(""), { beforeLast: never, chunkBytes: 100 }));
  const resource_limits = { drained_requests: 0 };
  await using gateway = startGateway({ ...oneModel("chat", server.url), resource_limits });
  using socket = await openSocket(gateway);
  socket.send({ input: "a" });
  await socket.message();
  socket.close();
  await server.requests[0]?.gone;
});

Deno.test("invalid messages get an error, and the connection continues", async () => {
  await using server = chatUpstream();
  await using gateway = startGateway(oneModel("chat", server.url));
  using socket = await openSocket(gateway);
  const cases: [string | Uint8Array<ArrayBuffer>, number, RegExp][] = [
    ["not JSON", 400, /expected a JSON object of type response.create/],
    ['{"type":"response.steer","stream_id":"x"}', 400, /response.create/],
    [new Uint8Array(3), 400, /binary/],
    ['{"type":"response.create","model":"acme/one","input":}', 400, /as JSON/],
    ['{"type":"response.create","model":"acme/one"}', 400, /input/],
    ['{"type":"response.create","model":"acme/one","input":"a","background":true}', 400, /background/],
    [`{"type":"response.create","input":"${"x".repeat(40_000_000)}"}`, 413, /33554432 bytes/],
    [`{${'"stream":true,'.repeat(20_000)}"type":"response.create"}`, 400, /more than 10000 members/],
    // Read as a whole, these members would take a second of the event loop.
    [`{${'"stream":true,'.repeat(2_000_000)}"type":"response.create"}`, 400, /as JSON: .*each member once/],
  ];
  for (const [message, status, words] of cases) {
    socket.send(message);
    const event = JSON.parse(await socket.message());
    assertEquals([event.type, event.status], ["error", status]);
    assertMatch(event.error.message, words);
  }
  socket.send('{"type":"response.processed","response_id":"resp_1"}');
  assertEquals((await socket.ask({ input: "a" })).status, "completed");
});

Deno.test("an upgrade needs a key, capacity and storage; otherwise clients fall back to POST", async () => {
  await using server = chatUpstream();
  const config = { ...oneModel("chat", server.url), responses: { websocket: { connections: 1 } } };
  const drain = createDrain();
  await using gateway = startGateway(config, { drain });
  assertEquals(await upgradeStatus(gateway, "no-such-key-0123456789"), 401);
  await assertRejects(() => openSocket(gateway, "no-such-key-0123456789"));
  {
    using socket = await openSocket(gateway);
    assertEquals(await upgradeStatus(gateway, gateway.key.key), 426);
    socket.close();
    await socket.closed;
  }
  await until("the end of the connection", () => drain.connections("socket") === 0);
  const plain = await fetch(`${gateway.url}/v1/responses`, { headers: { authorization: `Bearer ${gateway.key.key}` } });
  assertEquals([plain.status, plain.headers.get("upgrade")], [426, "websocket"], await plain.text());
  for (const responses of [{ websocket: null }, { recall: null }]) {
    await using without = startGateway({ ...config, responses });
    assertEquals(await upgradeStatus(without, without.key.key), 426);
  }
});

Deno.test("an upgrade whose headers a proxy has removed is not an error of the gateway", async () => {
  await using server = chatUpstream();
  await using gateway = startGateway(oneModel("chat", server.url));
  const [connection = "", version = "", key = ""] = HANDSHAKE;
  for (const left of [[connection, version], [version, key], ["connection: keep-alive", version, key]]) {
    assertEquals(await upgradeStatus(gateway, gateway.key.key, left), 426, left.join());
  }
  assertEquals(await upgradeStatus(gateway, gateway.key.key, ["connection: keep-alive, upgrade", version, key]), 101);
  assertEquals(gateway.requestLines.filter(({ level }) => level === "error"), []);
});

Deno.test("one key opens its share of connections, and leaves the rest to others", async () => {
  await using server = chatUpstream();
  const config = { ...oneModel("chat", server.url), responses: { websocket: { connections_per_key: 2 } } };
  await using gateway = startGateway(config);
  using _one = await openSocket(gateway);
  using _two = await openSocket(gateway);
  assertEquals(await upgradeStatus(gateway, gateway.key.key), 426);
  const other = await gateway.addKey();
  assertEquals(await upgradeStatus(gateway, other.key), 101);
});

Deno.test("queued messages count towards request bodies, and are released", async () => {
  const never = new Promise<void>(() => {});
  await using server = startUpstream(({ json }) => {
    const isHeld = json.messages[0].content === "held";
    return events(STREAMED.chat.join(""), isHeld ? { before: never } : undefined);
  });
  await using gateway = startGateway({
    ...oneModel("chat", server.url),
    resource_limits: { body_budget_bytes: 400_000, drained_requests: 0 },
  });
  const long = "word ".repeat(12_000);
  {
    using socket = await openSocket(gateway);
    socket.send({ input: "held" });
    for (let sent = 0; sent < 4; sent++) socket.send({ input: long });
    const { error } = JSON.parse(await socket.message());
    assertStringIncludes(error.message, "too many bytes");
    socket.close();
    await socket.closed;
  }
  await server.requests[0]?.gone;
  using socket = await openSocket(gateway);
  assertEquals((await socket.ask({ input: long })).status, "completed");
});

Deno.test("an idle connection is closed after its time", async () => {
  await using server = chatUpstream();
  await using gateway = startGateway({
    ...oneModel("chat", server.url),
    responses: { websocket: { idle_seconds: 1 } },
  });
  using socket = await openSocket(gateway);
  assertEquals((await socket.ask({ input: "a" })).status, "completed");
  const { code, reason } = await socket.closed;
  assertEquals([code, reason], [1000, "The connection was idle"]);
});

Deno.test("a shutdown closes idle connections at once, and others after their answer", async () => {
  const last = Promise.withResolvers<void>();
  await using server = startUpstream(() =>
    events(STREAMED.chat.join(""), { beforeLast: last.promise, chunkBytes: 100 })
  );
  const drain = createDrain();
  await using gateway = startGateway(oneModel("chat", server.url), { drain });
  using idle = await openSocket(gateway);
  using busy = await openSocket(gateway);
  busy.send({ input: "a" });
  await busy.message();
  drain.beginShutdown();
  drain.refuse();
  assertEquals((await idle.closed).code, 1001);
  let isOver = false;
  const arrived = drain.arrived().then(() => isOver = true);
  assertEquals(await upgradeStatus(gateway, gateway.key.key), 503);
  assert(!isOver);
  last.resolve();
  assertStringIncludes((await busy.answer()).at(-1) ?? "", "response.completed");
  await arrived;
  assertEquals((await busy.closed).code, 1001);
  await until("the end of the connection", () => drain.connections("socket") === 0);
});

/** A connection with manually written frames. */
async function upgradeByHand({ port, key }: TestGateway): Promise<Deno.TcpConn> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const head = ["GET /v1/responses HTTP/1.1", "host: a", "connection: Upgrade", "upgrade: websocket"];
  const more = ["sec-websocket-version: 13", "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ=="];
  const lines = [...head, ...more, `authorization: Bearer ${key.key}`];
  await connection.write(new TextEncoder().encode(`${lines.join("\r\n")}\r\n\r\n`));
  await connection.read(new Uint8Array(4096));
  return connection;
}

Deno.test("a WebSocket answers a ping with the same bytes", async () => {
  await using server = chatUpstream();
  await using gateway = startGateway(oneModel("chat", server.url));
  using connection = await upgradeByHand(gateway);
  // A mask of zeros does not change the text.
  await connection.write(new Uint8Array([0x89, 0x82, 0, 0, 0, 0, 0x68, 0x69]));
  const bytes = new Uint8Array(16);
  const size = await connection.read(bytes) ?? 0;
  assertEquals([...bytes.subarray(0, size)], [0x8a, 0x02, 0x68, 0x69]);
});

/** Text frames with a mask of zeros. */
function textFrames(message: string, count: number): Uint8Array<ArrayBuffer> {
  const text = new TextEncoder().encode(message);
  const frame = [0x81, 0x80 | text.length, 0, 0, 0, 0, ...text];
  return new Uint8Array(Array.from({ length: count }, () => frame).flat());
}

Deno.test("a slow reader slows its upstream", async () => {
  const chunk = STREAMED.chat[1] ?? "";
  const long = chunk.replace("Hello", "telecommunications ".repeat(5_000));
  let sent = 0;
  function* steps(): Iterable<string> {
    for (; sent < 1_000; sent++) yield long;
    yield* STREAMED.chat.slice(3);
  }
  await using server = startUpstream(() => ({ steps: steps() }));
  await using gateway = startGateway({ ...oneModel("chat", server.url), resource_limits: { drained_requests: 0 } });
  // A client that reads nothing.
  const connection = await upgradeByHand(gateway);
  await connection.write(textFrames('{"type":"response.create","model":"acme/one","input":"a"}', 1));
  let seen = 0;
  await until("it comes to rest", async () => {
    seen = sent;
    await pause(300);
    return sent > 0 && sent === seen;
  });
  assert(sent < 900, String(sent));
  // Nor does it read errors, so the gateway closes the connection.
  let isGone = false;
  void server.requests[0]?.gone.then(() => isGone = true);
  await until("the request is cancelled", async () => {
    await connection.write(textFrames("{}", 500));
    await pause(20);
    return isGone;
  });
  connection.close();
});

Deno.test("a client that does not read its errors is disconnected", async () => {
  await using server = chatUpstream();
  await using gateway = startGateway(oneModel("chat", server.url));
  using connection = await upgradeByHand(gateway);
  // An error has 25 times the bytes of its message: 40 MB of errors.
  for (let sent = 0; sent < 20; sent++) await connection.write(textFrames("{}", 10_000));
  await connection.write(new Uint8Array([0x88, 0x80, 0, 0, 0, 0]));
  const buffer = new Uint8Array(65_536);
  // It ends with a close, or a reset where the gateway has not read everything.
  for (let bytes = 0, read: number | null = 0; read !== null; bytes += read ?? 0) {
    assert(bytes < 20_000_000, String(bytes));
    read = await connection.read(buffer).catch(() => null);
  }
});

Deno.test("too many simultaneous messages end the connection before they are read", async () => {
  await using gateway = startGateway({});
  using connection = await upgradeByHand(gateway);
  await connection.write(textFrames("{}", 1_000));
  await connection.write(new Uint8Array([0x88, 0x80, 0, 0, 0, 0])).catch(() => {});
  let received = "";
  const buffer = new Uint8Array(65_536);
  for (let read: number | null = 0; read !== null; read = await connection.read(buffer).catch(() => null)) {
    received += new TextDecoder().decode(buffer.subarray(0, read));
  }
  assertLess(received.split("Cannot read the message").length, 300);
});

Deno.test("only some messages wait for a response", async () => {
  const never = new Promise<void>(() => {});
  await using server = startUpstream(() => events(STREAMED.chat.join(""), { before: never }));
  await using gateway = startGateway({ ...oneModel("chat", server.url), resource_limits: { drained_requests: 0 } });
  using socket = await openSocket(gateway);
  for (let sent = 0; sent < 66; sent++) socket.send({ input: "a" });
  const error = JSON.parse(await socket.message());
  assertEquals([error.type, error.status], ["error", 400]);
  assertStringIncludes(error.error.message, "waiting for an earlier response");
});
