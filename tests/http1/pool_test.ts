import { assert, assertEquals, assertMatch } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { addressPolicy } from "../../lib/upstreams/address_guard.ts";
import { createHttp1Client } from "../../lib/http1/mod.ts";
import { createHttp1Transport } from "../../lib/upstreams/select_transport.ts";
import { ConnectionPool, Http1Connection } from "../../lib/http1/pool.ts";
import type { Outgoing } from "../../lib/upstreams/transport.ts";
import { simulateTime } from "../support/simulated_time.ts";
import { soon, until } from "../support/soon.ts";
import { failureOf, request } from "../upstreams/transports.ts";
import { type RawUpstream, say, startRawUpstream } from "../upstream/raw.ts";
import { CLOSED_PORT } from "../support/closed_port.ts";

const ADDRESSES = addressPolicy();

const OK = "HTTP/1.1 200 OK\r\n";
const HELLO = `${OK}content-length: 5\r\n\r\nhello`;

/** A server that gives every request the same answer. */
const startSame = (wire = HELLO): RawUpstream =>
  startRawUpstream(async (socket) => {
    await say(socket, wire);
    return "keep";
  });

/** A host that plays with one socket after the other, and closes each. */
function startBare(play: (socket: Deno.TcpConn, number: number) => Promise<void>) {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const host = {
    url: `http://127.0.0.1:${listener.addr.port}`,
    accepted: 0,
    async [Symbol.asyncDispose]() {
      listener.close();
      await serving;
    },
  };
  const serving = (async () => {
    for await (const socket of listener) {
      await play(socket, host.accepted++);
      socket.close();
    }
  })();
  return host;
}

Deno.test("the most recently used connection is reused first, and idle connections are limited", async () => {
  await using server = startSame();
  const transport = createHttp1Transport({ idleConnections: 2 });
  const three = await Promise.all([1, 2, 3].map(() => transport.send(request(server.url))));
  for (const incoming of three) await incoming.text(10);
  // The connection that had been idle longest was closed.
  await soon("one closed", server.ended(1));
  for (let number = 0; number < 4; number++) await (await transport.send(request(server.url))).text(10);
  assertEquals(server.accepted, 3);
  assertEquals(new Set(server.received.slice(3).map(({ connection }) => connection)).size, 1);
  transport.close();
  await soon("all closed", server.ended(3));
});

Deno.test("idle connections are closed in time, and earlier if the server says so", async () => {
  const pool = new ConnectionPool({ hostname: "127.0.0.1", port: 1, tls: false }, {
    idleConnections: 5,
    addresses: ADDRESSES,
    idleMs: 50,
  });
  pool.close();
  await using server = startSame();
  const transport = createHttp1Transport({ idleMs: 50 });
  await (await transport.send(request(server.url))).text(10);
  await soon("idle closed", server.ended(1));
  transport.close();

  // A second before its time it is not used any more: with one second, never.
  for (const [seconds, kept] of [[1, false], [60, true]] as const) {
    await using polite = startSame(`${OK}keep-alive: timeout=${seconds}\r\ncontent-length: 5\r\n\r\nhello`);
    const patient = createHttp1Transport();
    await (await patient.send(request(polite.url))).text(10);
    await (await patient.send(request(polite.url))).text(10);
    assertEquals(polite.accepted, kept ? 1 : 2);
    patient.close();
  }
});

Deno.test("a connection closed by its server while idle is not reused", async () => {
  await using server = startSame();
  const { hostname, port } = new URL(server.url);
  const pool = new ConnectionPool({ hostname, port: Number(port), tls: false }, {
    idleConnections: 5,
    addresses: ADDRESSES,
  });
  const connection = await pool.open(new AbortController().signal);
  pool.put(connection);
  assert(pool.take() === connection);
  pool.put(connection);
  server.hangUp();
  // The runtime notices it in a later turn.
  await until("the connection is gone", () => {
    const idle = pool.take();
    if (idle !== undefined) pool.put(idle);
    return idle === undefined;
  });
  pool.close();
});

Deno.test("unsolicited bytes of a server are not read as an answer", async () => {
  const read = Promise.withResolvers<void>();
  await using server = startRawUpstream(async (socket, { connection }) => {
    await say(socket, HELLO);
    if (connection > 0) return "keep";
    await read.promise;
    await say(socket, `${OK}content-length: 4\r\n\r\nevil`);
    return "keep";
  });
  const transport = createHttp1Transport();
  assertEquals(await (await transport.send(request(server.url))).text(10), "hello");
  read.resolve();
  await soon("connection closed", server.ended(1));
  assertEquals(await (await transport.send(request(server.url))).text(10), "hello");
  assertEquals(server.accepted, 2);
  transport.close();

  // The same in one piece with the answer before.
  await using eager = startSame(`${HELLO}${OK}content-length: 4\r\n\r\nevil`);
  const second = createHttp1Transport();
  for (let number = 1; number <= 2; number++) {
    assertEquals(await (await second.send(request(eager.url))).text(10), "hello");
    await soon("connection closed", eager.ended(number));
  }
  second.close();
});

Deno.test("a request that was sent completely is never repeated, and says where a retry may help", async () => {
  for (const then of ["close", "reset"] as const) {
    await using server = startRawUpstream(async (socket, { body }) => {
      if (body !== "first") return then;
      await say(socket, HELLO);
      return "keep";
    });
    const transport = createHttp1Transport();
    await (await transport.send(request(server.url, { body: "first" }))).text(10);
    const error = await failureOf(transport.send(request(server.url, { body: "second" })));
    assert(error instanceof GatewayError && error.kind === "upstream", String(error));
    assertEquals(error.fault, "stale");
    assertMatch(error.message, /Cannot reach/);
    assertEquals(server.received.map(({ body }) => body), ["first", "second"]);
    assertEquals(server.accepted, 1);
    transport.close();
  }
});

Deno.test("only an idle, unanswered, reused connection counts as stale", async () => {
  const cases: [name: string, say: string, waitMs: number, change: () => Partial<Outgoing>][] = [
    ["new", "", 0, () => ({ fresh: true })],
    ["answered", "H", 0, () => ({})],
    ["took its time", "", 1_050, () => ({})],
    ["carried a stream", "", 0, () => ({ body: ReadableStream.from([new Uint8Array(3)]) })],
    ["carried a stream of known length", "", 0, () => ({
      body: ReadableStream.from([new Uint8Array(3)]),
      bodyBytes: 3,
    })],
  ];
  for (const [name, wire, waitMs, change] of cases) {
    using time = simulateTime(0);
    await using server = startRawUpstream(async (socket, { body }) => {
      await say(socket, body === "first" ? HELLO : wire);
      if (body === "first") return "keep";
      await time.pass(waitMs);
      return "close";
    });
    const transport = createHttp1Transport();
    await (await transport.send(request(server.url, { body: "first" }))).text(10);
    const error = await failureOf(transport.send(request(server.url, { body: "second", ...change() })));
    assert(
      error instanceof GatewayError && error.kind === "upstream" && error.fault === undefined,
      `${name}: ${error}`,
    );
    assertEquals([server.received.length, server.accepted], [2, name === "new" ? 2 : 1], name);
    transport.close();
  }
});

Deno.test("a stream of known length is sent with exactly that length", async () => {
  await using server = startRawUpstream(async (socket) => {
    await say(socket, HELLO);
    return "keep";
  });
  const transport = createHttp1Transport();
  const send = (bodyBytes: number, ...pieces: number[]) =>
    transport.send(request(server.url, {
      body: ReadableStream.from(pieces.map((size) => new TextEncoder().encode("x".repeat(size)))),
      bodyBytes,
    }));
  for (const [bytes, ...pieces] of [[5, 2, 0, 3], [0], [700_000, 300_000, 400_000]] as const) {
    assertEquals(await (await send(bytes, ...pieces)).text(10), "hello");
    const received = server.received.at(-1);
    assertMatch(received?.head ?? "", new RegExp(`\\r\\ncontent-length: ${bytes}\\r\\n`));
    assert(!received?.head.includes("transfer-encoding"));
    assertEquals(received?.body, "x".repeat(bytes));
  }
  assertEquals(server.accepted, 1);
  for (const pieces of [[2, 2], [2, 4]]) {
    const error = await soon("failure", failureOf(send(5, ...pieces)));
    assert(error instanceof GatewayError && error.kind === "upstream", String(error));
    await until("connection closed", () => server.open === 0);
  }
  assertEquals(server.received.length, 3);
  transport.close();
});

Deno.test("the idle time of connections adapts to the host", async () => {
  for (
    const [tls, keepsMs, wanted] of [[false, undefined, 4_000], [true, undefined, 50_000], [
      true,
      5_000,
      4_000,
    ]] as const
  ) {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const pool = new ConnectionPool({ hostname: "127.0.0.1", port: listener.addr.port, tls }, {
      idleConnections: 5,
      addresses: ADDRESSES,
    });
    const connection = new Http1Connection(await Deno.connect({ hostname: "127.0.0.1", port: listener.addr.port }));
    const peer = await listener.accept();
    pool.put(connection, keepsMs);
    assertEquals(connection.idleMs, wanted);
    pool.close();
    peer.close();
    listener.close();
  }
});

Deno.test("a connection is prepared before its idle time ends, and never after that or after close()", async () => {
  await using server = startSame();
  const { hostname, port } = new URL(server.url);
  const pool = new ConnectionPool({ hostname, port: Number(port), tls: false }, {
    idleConnections: 5,
    addresses: ADDRESSES,
  });
  const open = () => pool.open(new AbortController().signal);
  // By its peer it has 3 seconds, less the one before the end.
  for (const [keepsMs, idleMs] of [[3_000, 2_000], [undefined, 4_000]] as const) {
    const connection = await open();
    const before = performance.now();
    pool.put(connection, keepsMs);
    assert(connection.idleSince >= before);
    assert(pool.take(connection.idleSince + idleMs - 1) === connection);
    pool.put(connection, keepsMs);
    assertEquals(pool.take(connection.idleSince + idleMs + 1), undefined);
  }
  // Its host may have another address after two minutes.
  for (const [agedMs, isKept] of [[119_000, true], [120_000, false]] as const) {
    const connection = await open();
    connection.openedAt -= agedMs;
    pool.put(connection);
    assertEquals(pool.take(connection.idleSince + 2_000), undefined);
    assertEquals(connection.idleSince > 0, isKept);
  }
  await soon("old ones closed", server.ended(2));
  const late = await open();
  pool.close();
  assertEquals(pool.reusesConnections, false);
  pool.put(late);
  assertEquals(pool.take(), undefined);
  await soon("the last one closed", server.ended(3));
});

Deno.test("an address that does not answer gives way to the next one", async () => {
  await using server = startSame();
  const { connect } = Deno;
  const tried: string[] = [];
  Deno.connect = ((options: Deno.ConnectOptions) => {
    tried.push(options.hostname ?? "");
    // Routers drop what they cannot deliver.
    return options.hostname === "127.0.0.1" ? connect(options) : new Promise((_, reject) => {
      options.signal?.addEventListener("abort", () => reject(new Error("aborted")));
    });
  }) as typeof connect;
  try {
    const addresses = addressPolicy({ lookup: () => Promise.resolve(["192.0.2.1", "127.0.0.1"]) });
    const client = createHttp1Client({ addresses });
    const url = server.url.replace("127.0.0.1", "two-addresses.test");
    const answer = await client.send(request(url, { limits: { connectMs: 5_000 } }));
    assertEquals([await answer.text(10), tried], ["hello", ["192.0.2.1", "127.0.0.1"]]);
    client.close();
  } finally {
    Deno.connect = connect;
  }
});

Deno.test("a request that was not sent completely is repeated once, on a new connection", async () => {
  const large = "x".repeat(20_000_000);
  let whole = 0;
  await using host = startBare(async (socket, number) => {
    const buffer = new Uint8Array(1_000_000);
    const first = await socket.read(buffer) ?? 0;
    if (number === 0) {
      // Answers once, and closes in the middle of the next request.
      await say(socket, HELLO);
      await socket.read(buffer);
    } else {
      for (let left = large.length - first; left > 0;) left -= await socket.read(buffer) ?? left;
      whole++;
      await say(socket, HELLO);
      await socket.read(buffer).catch(() => {});
    }
  });
  const transport = createHttp1Transport();
  await (await transport.send(request(host.url, { body: "first" }))).text(10);
  assertEquals(await (await soon("answer", transport.send(request(host.url, { body: large })))).text(10), "hello");
  assertEquals([host.accepted, whole], [2, 1]);
  transport.close();
});

Deno.test("a request that was not sent completely is not repeated once its answer has begun", async () => {
  await using host = startBare(async (socket) => {
    const buffer = new Uint8Array(10_000);
    await socket.read(buffer);
    await say(socket, HELLO);
    await socket.read(buffer);
    await say(socket, "HTTP/1.1 500 ");
    // Its answer is not lost with the connection, which the client closes.
    await socket.closeWrite();
    while (await socket.read(buffer).catch(() => null) !== null);
  });
  const transport = createHttp1Transport();
  await (await transport.send(request(host.url, { body: "first" }))).text(10);
  const call = transport.send(request(host.url, { body: "x".repeat(20_000_000) }));
  assert(await soon("failure", failureOf(call)) instanceof GatewayError);
  assertEquals(host.accepted, 1);
  transport.close();
});

Deno.test("a started stream is not repeated", async () => {
  await using host = startBare(async (socket) => {
    const buffer = new Uint8Array(10_000);
    await socket.read(buffer);
    await say(socket, HELLO);
    await socket.read(buffer);
  });
  const transport = createHttp1Transport();
  await (await transport.send(request(host.url, { body: "first" }))).text(10);
  const cancelled = Promise.withResolvers<void>();
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new Uint8Array(100_000)),
    cancel: () => cancelled.resolve(),
  });
  const error = await soon("failure", failureOf(transport.send(request(host.url, { body: endless }))));
  assert(error instanceof GatewayError && error.fault === undefined, String(error));
  await soon("stream cancelled", cancelled.promise);
  assertEquals(host.accepted, 1);
  transport.close();
});

Deno.test("an answer before the end of the request closes the connection", async () => {
  const closed = Promise.withResolvers<void>();
  await using host = startBare(async (socket) => {
    const buffer = new Uint8Array(10_000);
    await socket.read(buffer);
    await say(socket, HELLO);
    while (await socket.read(buffer).catch(() => null) !== null);
    closed.resolve();
  });
  const transport = createHttp1Transport();
  const never = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(new Uint8Array(10)) });
  assertEquals(await (await transport.send(request(host.url, { body: never }))).text(10), "hello");
  await soon("connection closed", closed.promise);
  assertEquals(host.accepted, 1);
  transport.close();
});

Deno.test("interim answers are skipped, and too many are rejected", async () => {
  const interim = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
  for (const [count, fine] of [[0, true], [1, true], [16, true], [17, false]] as const) {
    await using server = startSame(interim.repeat(count) + HELLO);
    const transport = createHttp1Transport();
    const error = await failureOf(transport.send(request(server.url)).then((incoming) => incoming.text(10)));
    assertEquals(error === undefined, fine, `${count}: ${error}`);
    await until("connection kept or closed", () => server.open === (fine ? 1 : 0));
    transport.close();
  }
});

Deno.test("an aborted call rejects, even if its whole answer has arrived", async () => {
  await using server = startSame();
  for (const act of ["read", "text"] as const) {
    const transport = createHttp1Transport();
    const client = new AbortController();
    const incoming = await transport.send(request(server.url, { signal: client.signal }));
    const reason = new Error("Left");
    client.abort(reason);
    assertEquals(await failureOf(act === "read" ? incoming.read() : incoming.text(10)), reason);
    incoming.release();
    incoming.cancel();
    await until("connection closed", () => server.open === 0);
    transport.close();
  }
});

Deno.test("a stream that was never started is cancelled", async () => {
  const cancelled = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({ cancel: () => cancelled.resolve() });
  const transport = createHttp1Transport();
  const sent = transport.send(request(`http://127.0.0.1:${CLOSED_PORT}`, { body }));
  assert(await failureOf(sent) instanceof GatewayError);
  await soon("cancelled", cancelled.promise);
  transport.close();
});
