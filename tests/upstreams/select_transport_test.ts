import { assert, assertEquals, assertMatch } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import type { Transport } from "../../lib/upstreams/transport.ts";
import {
  createTransportSelector,
  transportKindFor,
  type TransportSelectorOptions,
} from "../../lib/upstreams/select_transport.ts";
import { oneModel, startGateway } from "../support/gateway.ts";
import { say, startRawUpstream } from "../upstream/raw.ts";
import { prompt, WHOLE } from "../upstream/replies.ts";
import { type FakeUpstream, json, startUpstream } from "../upstream/mod.ts";
import { soon } from "../support/soon.ts";
import { failureOf, request } from "./transports.ts";

/** SETTINGS, empty, and GOAWAY with PROTOCOL_ERROR: the answer of an HTTP/2-only peer to a line of HTTP/1.1. */
const SETTINGS = "\0\0\0\x04\0\0\0\0\0";
const GOAWAY = "\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01";

/** A proxy that forwards only HTTP/2 connections, and answers all other connections with these bytes. */
function startHttp2Only(
  behind: FakeUpstream,
  { refusal, marks = "PRI * HTTP/2.0" }: { refusal: string; marks?: string },
): AsyncDisposable & { url: string; refused: number } {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const running: Promise<unknown>[] = [];
  async function pass(socket: Deno.TcpConn): Promise<void> {
    const first = new Uint8Array(65_536);
    const size = await socket.read(first) ?? 0;
    if (!new TextDecoder("latin1").decode(first.subarray(0, size)).includes(marks)) {
      front.refused++;
      await say(socket, refusal);
      await socket.closeWrite();
      while (await socket.read(first).catch(() => null) !== null);
      return socket.close();
    }
    const to = await Deno.connect({ hostname: "127.0.0.1", port: Number(new URL(behind.url).port) });
    await to.write(first.subarray(0, size));
    await Promise.allSettled([socket.readable.pipeTo(to.writable), to.readable.pipeTo(socket.writable)]);
  }
  const front = {
    url: `http://127.0.0.1:${listener.addr.port}`,
    refused: 0,
    async [Symbol.asyncDispose]() {
      listener.close();
      await accepting;
      await Promise.allSettled(running);
    },
  };
  const accepting = (async () => {
    for await (const socket of listener) running.push(pass(socket));
  })();
  return front;
}

function wayTo(url: string, more: Partial<TransportSelectorOptions> = {}): { transport: Transport; reasons: string[] } {
  const reasons: string[] = [];
  const way = createTransportSelector({
    url,
    configured: "auto",
    env: () => undefined,
    onFallback: (reason) => void reasons.push(reason),
    ...more,
  });
  return { transport: way.open(), reasons };
}

const UPGRADE = "HTTP/1.1 426 Upgrade Required\r\nconnection: upgrade\r\ncontent-length: 0\r\n";

Deno.test("transportKindFor() chooses by host and setting", () => {
  const cases: [wanted: TransportSelectorOptions["configured"], env: Record<string, string>, client: string][] = [
    ["auto", {}, "http1"],
    ["auto", { HTTPS_PROXY: "http://p" }, "fetch"],
    ["auto", { HTTPS_PROXY: "http://p", NO_PROXY: "one.example" }, "http1"],
    ["auto", { HTTP_PROXY: "http://p" }, "http1"],
    ["http1", { HTTPS_PROXY: "http://p" }, "http1"],
    ["fetch", {}, "fetch"],
  ];
  for (const [wanted, env, client] of cases) {
    assertEquals(
      transportKindFor({ url: "https://one.example/v1", configured: wanted, env: (name) => env[name] }),
      client,
    );
  }
});

Deno.test("a host with HTTP/2 only is switched to fetch, logged once", async () => {
  const refusals: [name: string, wire: string, reason: RegExp][] = [
    ["SETTINGS", SETTINGS, /speaks only HTTP\/2/],
    ["GOAWAY", GOAWAY, /speaks only HTTP\/2/],
    ["426 for h2c", `${UPGRADE}upgrade: h2c\r\n\r\n`, /upgrade to HTTP\/2/],
    ["426 for HTTP/2", `${UPGRADE}upgrade: TLS/1.2, HTTP/2.0\r\n\r\n`, /upgrade to HTTP\/2/],
  ];
  for (const [name, wire, reason] of refusals) {
    await using behind = startUpstream(({ body }) => json({ got: body }));
    await using front = startHttp2Only(behind, { refusal: wire });
    const { transport, reasons } = wayTo(front.url);
    for (const body of ["one", "two", "three"]) {
      const incoming = await soon(name, transport.send(request(front.url, { body })));
      assertEquals(await incoming.text(100), `{"got":"${body}"}`);
    }
    assertEquals([front.refused, behind.requests.length], [1, 3], name);
    assertEquals(reasons.length, 1);
    assertMatch(reasons[0] ?? "", reason);
    transport.close();
  }
});

Deno.test("a host that offers only HTTP/2 over TLS is switched to fetch", async () => {
  const files = new URL("../fixtures/tls/", import.meta.url);
  await using behind = startUpstream(({ body }) => json({ got: body }), {
    cert: await Deno.readTextFile(new URL("server.pem", files)),
    key: await Deno.readTextFile(new URL("server.key", files)),
  });
  // The alert `no_application_protocol`, in the unencrypted form before a key exists.
  await using front = startHttp2Only(behind, { refusal: "\x15\x03\x03\0\x02\x02\x78", marks: "\x02h2" });
  const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--quiet",
      "--no-check",
      "-A",
      new URL("select_transport_program.ts", import.meta.url).pathname,
      front.url.replace("http:", "https:"),
    ],
    env: { NO_COLOR: "1", DENO_CERT: new URL("ca.pem", files).pathname },
    cwd: new URL("../..", import.meta.url),
  }).output();
  const reported = ["The peer does not offer HTTP/1.1", ...[0, 1, 2].map((number) => `{"got":"${number}"}`)];
  assertEquals(new TextDecoder().decode(stdout), JSON.stringify(reported), new TextDecoder().decode(stderr));
  assertEquals([front.refused, behind.requests.length], [1, 3]);
});

Deno.test("all transports of a selector switch together", async () => {
  await using behind = startUpstream(() => json({}));
  await using front = startHttp2Only(behind, { refusal: SETTINGS });
  let count = 0;
  const way = createTransportSelector({
    url: front.url,
    configured: "auto",
    env: () => undefined,
    onFallback: () => void count++,
  });
  const [texts, images] = [way.open(), way.open({ idleConnections: 0 })];
  const ask = async (transport: Transport) => await (await transport.send(request(front.url))).text(10);
  await Promise.all([ask(texts), ask(texts), ask(texts)]);
  assertEquals([front.refused, count], [3, 1]);
  await ask(images);
  assertEquals([front.refused, count], [3, 1]);
  texts.close();
  images.close();
});

Deno.test("a body that may have started is not sent again; the caller may retry", async () => {
  await using behind = startUpstream(({ body }) => json({ got: body }));
  await using front = startHttp2Only(behind, { refusal: SETTINGS });
  const { transport, reasons } = wayTo(front.url);
  const stream = () => request(front.url, { body: ReadableStream.from([new TextEncoder().encode("pieces")]) });
  const error = await failureOf(transport.send(stream()));
  assert(error instanceof GatewayError && error.fault === "unreachable", String(error));
  assertEquals([reasons.length, behind.requests.length], [1, 0]);
  assertEquals(await (await transport.send(stream())).text(100), '{"got":"pieces"}');
  transport.close();
});

Deno.test("with http1 only, an HTTP/2 host is unreachable", async () => {
  await using behind = startUpstream(() => json({}));
  await using front = startHttp2Only(behind, { refusal: SETTINGS });
  const { transport, reasons } = wayTo(front.url, { configured: "http1" });
  for (let number = 1; number <= 2; number++) {
    const error = await failureOf(transport.send(request(front.url)));
    assert(error instanceof GatewayError && error.fault === "unreachable", String(error));
    assertEquals([front.refused, reasons.length], [number, 0]);
  }
  transport.close();
});

Deno.test("a response that is not HTTP/2 causes no switch", async () => {
  const wires = [
    `${UPGRADE}upgrade: websocket\r\n\r\n`,
    `${UPGRADE}\r\n`,
    // As Apache announces it.
    "HTTP/1.1 200 OK\r\nupgrade: h2,h2c\r\nconnection: upgrade\r\ncontent-length: 0\r\n\r\n",
    "SSH-2.0-x\r\n",
    "\0\0\0\x04",
    "\0\0\0\x04\0\0\0\0\x01",
    "\0\0\0\0\0\0\0\0\0",
    "",
  ];
  for (const wire of wires) {
    await using server = startRawUpstream(async (socket) => {
      await say(socket, wire);
      return "close";
    });
    const { transport, reasons } = wayTo(server.url);
    for (let number = 1; number <= 2; number++) {
      const content = await transport.send(request(server.url, { fresh: true })).then((incoming) => {
        incoming.cancel();
        return incoming.status;
      }, () => "error");
      assertEquals(content, wire.startsWith("HTTP") ? Number(wire.slice(9, 12)) : "error", JSON.stringify(wire));
    }
    assertEquals([server.received.length, reasons], [2, []], JSON.stringify(wire));
    transport.close();
  }
});

Deno.test("the gateway answers from an HTTP/2-only host, and logs it once", async () => {
  await using behind = startUpstream(() => json(WHOLE.chat));
  await using front = startHttp2Only(behind, { refusal: SETTINGS });
  await using gateway = startGateway(oneModel("chat", front.url));
  for (let number = 0; number < 2; number++) {
    const response = await gateway.ask("chat", prompt("chat"));
    assertEquals([response.status, response.headers.get("x-sluice-attempts")], [200, "1"], await response.text());
  }
  assertEquals(gateway.logs, [{
    level: "warn",
    event: "transport_fallback",
    upstream: "one",
    to: "fetch",
    reason: "The peer speaks only HTTP/2",
  }]);
});
