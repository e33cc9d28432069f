import { assert, assertEquals } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { createHttp1Transport } from "../../lib/upstreams/select_transport.ts";
import { Dialer } from "../../lib/http1/mod.ts";
import { addressPolicy } from "../../lib/upstreams/address_guard.ts";
import { soon, until } from "../support/soon.ts";
import { failureOf, request } from "../upstreams/transports.ts";

const FILES = new URL("../fixtures/tls/", import.meta.url);
const CA = new URL("ca.pem", FILES).pathname;
const TLS = {
  cert: await Deno.readTextFile(new URL("server.pem", FILES)),
  key: await Deno.readTextFile(new URL("server.key", FILES)),
};

/** An HTTP/1.1 server over TLS with this ALPN offer, which answers once it has this number of connections. */
function startTls(
  alpnProtocols?: string[],
  connections = 1,
): AsyncDisposable & { port: number; accepted: number; chosen: Set<string | null> } {
  const listener = Deno.listenTls({ hostname: "127.0.0.1", port: 0, ...TLS, alpnProtocols });
  const sockets = new Set<Deno.TlsConn>();
  const running: Promise<void>[] = [];
  const chosen = new Set<string | null>();
  const enough = Promise.withResolvers<void>();
  async function serve(socket: Deno.TlsConn): Promise<void> {
    const { alpnProtocol } = await socket.handshake();
    chosen.add(alpnProtocol);
    const buffer = new Uint8Array(10_000);
    const answer = new TextEncoder().encode("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
    while (await socket.read(buffer) !== null) {
      await enough.promise;
      await socket.write(answer);
    }
  }
  const server = {
    port: listener.addr.port,
    accepted: 0,
    chosen,
    async [Symbol.asyncDispose]() {
      listener.close();
      enough.resolve();
      await accepting;
      for (const socket of sockets) close(socket);
      await Promise.all(running);
    },
  };
  const accepting = (async () => {
    for await (const socket of listener) {
      if (++server.accepted >= connections) enough.resolve();
      sockets.add(socket);
      running.push(serve(socket).catch(() => {}));
    }
  })();
  return server;
}

function close(socket: Deno.TlsConn): void {
  try {
    socket.close();
  } catch {
    // It is closed already.
  }
}

async function callFrom(url: string, env: Record<string, string>, count = 1): Promise<string[]> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--quiet",
      "--no-check",
      "-A",
      new URL("tls_program.ts", import.meta.url).pathname,
      url,
      String(count),
    ],
    env: { NO_COLOR: "1", ...env },
    cwd: new URL("../..", import.meta.url),
  }).output();
  assertEquals(code, 0, new TextDecoder().decode(stderr));
  return JSON.parse(new TextDecoder().decode(stdout));
}

Deno.test("the runtime's certificate authorities are trusted, for names and addresses", async () => {
  await using server = startTls(["h2", "http/1.1"]);
  const fine = ["200 hello", "200 hello"];
  const settings: [Record<string, string>, string[]][] = [
    [{ DENO_CERT: CA }, fine],
    [{ NODE_EXTRA_CA_CERTS: CA }, fine],
    [{ DENO_TLS_CA_STORE: "system", SSL_CERT_FILE: CA }, fine],
    [{}, ["GatewayError unreachable", "GatewayError unreachable"]],
  ];
  for (const [index, [env, expected]] of settings.entries()) {
    const host = index % 2 === 0 ? "127.0.0.1" : "localhost";
    assertEquals(await callFrom(`https://${host}:${server.port}`, env), expected, JSON.stringify(env));
  }
  // HTTP/2 was not chosen.
  assertEquals([...server.chosen], ["http/1.1"]);
});

Deno.test("a certificate for another name is rejected", async () => {
  await using server = startTls();
  const answers = await callFrom(`https://127.0.0.2:${server.port}`, { DENO_CERT: CA });
  assertEquals(answers, ["GatewayError unreachable", "GatewayError unreachable"]);
});

Deno.test("100 concurrent calls use 100 connections, and one more reuses one", async () => {
  await using server = startTls(undefined, 100);
  const answers = await callFrom(`https://localhost:${server.port}`, { DENO_CERT: CA }, 100);
  assertEquals(answers, Array(101).fill("200 hello"));
  assertEquals(server.accepted, 100);
});

Deno.test("a host without a handshake is given up in time, and so is an aborted call", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const url = `https://127.0.0.1:${listener.addr.port}`;
  const transport = createHttp1Transport();
  const started = performance.now();
  const late = await soon("limit", failureOf(transport.send(request(url, { limits: { connectMs: 100 } }))));
  assert(late instanceof GatewayError && late.message.includes("no connection within 0.1 s"), String(late));
  assert(performance.now() - started < 60_000);
  const reason = new Error("Left");
  const client = new AbortController();
  const failed = failureOf(transport.send(request(url, { signal: client.signal })));
  setTimeout(() => client.abort(reason), 30);
  assertEquals(await soon("abort", failed), reason);
  transport.close();
  listener.close();
});

Deno.test("unfinished handshakes are limited in number", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const peers: Deno.TcpConn[] = [];
  const accepting = (async () => {
    for await (const peer of listener) peers.push(peer);
  })();
  const dialer = new Dialer({ hostname: "127.0.0.1", port: listener.addr.port, tls: true }, addressPolicy());
  const giveUp = async () => {
    const call = new AbortController();
    const count = peers.length;
    let isOver = false;
    const failed = failureOf(dialer.dial(call.signal)).finally(() => isOver = true);
    await until("a connection", () => peers.length > count || isOver);
    if (isOver) return String(await failed);
    // Past the connection, in the handshake.
    await peers.at(-1)?.read(new Uint8Array(1_000));
    call.abort(new Error("Left"));
    return String(await failed);
  };
  for (let number = 0; number < 64; number++) assertEquals(await giveUp(), "Error: Left");
  const refused = await failureOf(dialer.dial(new AbortController().signal));
  assert(String(refused).includes("too many TLS handshakes"), String(refused));
  for (const peer of peers) peer.close();
  // The ends of the handshakes are on their way.
  await until("handshakes are forgotten", async () => await giveUp() === "Error: Left");
  dialer.close();
  listener.close();
  await accepting;
  peers.at(-1)?.close();
});
