import { assert, assertEquals, assertMatch } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { LARGE_BODY_BYTES } from "../../lib/scheduler.ts";
import type { Incoming } from "../../lib/upstreams/transport.ts";
import { startDeaf } from "../upstream/deaf_host.ts";
import { chunk, CHUNKED_EVENTS, say, startRawUpstream } from "../upstream/raw.ts";
import { CLOSED_PORT } from "../support/closed_port.ts";
import { othersTurns } from "../support/others_turns.ts";
import { simulateTime } from "../support/simulated_time.ts";
import { soon, until } from "../support/soon.ts";
import { failureOf, request, TRANSPORTS } from "./transports.ts";

const OK = "HTTP/1.1 200 OK\r\n";

for (const [name, create] of Object.entries(TRANSPORTS)) {
  Deno.test(`${name}: request and response pass unchanged`, async () => {
    await using server = startRawUpstream(async (socket) => {
      await say(
        socket,
        `HTTP/1.1 418 Teapot\r\ncontent-type: text/plain\r\nUpgrade: 1\r\nupgrade: 2\r\ncontent-length: 3\r\n\r\nh\xc3\xa9`,
      );
      return "keep";
    });
    const transport = create();
    const body = '{"text":"é😀"}';
    const incoming = await transport.send(
      request(`${server.url}/v1/x?key=a%20b`, { body, headers: { "x-key": "s e" } }),
    );
    assertEquals([incoming.status, incoming.header("upgrade"), incoming.header("retry-after")], [418, "1, 2", null]);
    assertEquals(await incoming.text(100), "hé");
    assertEquals(await incoming.read(), undefined);
    const [requested] = server.received;
    const head = requested?.head.toLowerCase() ?? "";
    assert(head.startsWith("post /v1/x?key=a%20b http/1.1\r\n"), head);
    for (
      const line of [`host: 127.0.0.1:${server.port}`, "x-key: s e", "accept-encoding: identity", "user-agent: sluice"]
    ) {
      assertEquals(head.split(`\r\n${line}\r\n`).length, 2, `${line} in ${head}`);
    }
    assertMatch(head, /\r\ncontent-length: 17\r\n/);
    assertEquals(requested?.body, String.fromCharCode(...new TextEncoder().encode(body)));
    transport.close();
  });

  Deno.test(`${name}: a long body is sent completely, and not at all for an aborted call`, async () => {
    await using server = startRawUpstream(async (socket, { body }) => {
      await say(socket, `${OK}content-length: 7\r\n\r\n${String(body.length).padStart(7)}`);
      return "keep";
    });
    const transport = create();
    const body = "x".repeat(LARGE_BODY_BYTES + 1);
    const leaving = new AbortController();
    const reason = new Error("left");
    const failed = failureOf(transport.send(request(server.url, { body, signal: leaving.signal })));
    leaving.abort(reason);
    assertEquals(await soon("the end", failed), reason);
    assertEquals(server.received, []);
    const incoming = await transport.send(request(server.url, { body }));
    assertEquals(await incoming.text(100), String(body.length));
    transport.close();
  });

  Deno.test(`${name}: bodies of every size arrive, as texts and as streams`, async () => {
    await using server = startRawUpstream(async (socket, { body }) => {
      await say(socket, `${OK}content-length: ${body.length}\r\n\r\n${body}`);
      return "keep";
    });
    const transport = create();
    for (const size of [0, 1, 1_000, 4_095, 61_439, 61_440, 61_441, 65_536, 300_000, 3_000_000]) {
      const text = "x".repeat(size);
      const incoming = await transport.send(request(server.url, { body: text }));
      assert(await incoming.text(4_000_000) === text, `${size}`);
      const bytes = new TextEncoder().encode(text);
      const stream = ReadableStream.from([bytes.subarray(0, size / 2), new Uint8Array(0), bytes.subarray(size / 2)]);
      const streamed = await transport.send(request(server.url, { body: stream }));
      assert(await streamed.text(4_000_000) === text, `a stream of ${size}`);
    }
    transport.close();
    assert(server.accepted <= 3, `${server.accepted} connections`);
  });

  Deno.test(`${name}: a response over the limit is an error, with any framing`, async () => {
    await using server = startRawUpstream(async (socket, { body }) => {
      const size = Number(body.replace(/\D/g, ""));
      const text = "x".repeat(size);
      const isChunked = body.startsWith("chunks");
      await say(socket, isChunked ? CHUNKED_EVENTS : `${OK}content-length: ${size}\r\n\r\n`);
      await say(socket, isChunked ? chunk(text) + chunk("") : text).catch(() => {});
      return "keep";
    });
    const transport = create();
    // The longer ones arrive in pieces.
    for (const size of [101, 100_001]) {
      for (const body of [`length ${size}`, `chunks ${size}`]) {
        const right = await transport.send(request(server.url, { body }));
        assertEquals((await right.text(size)).length, size, body);
        const wrong = await transport.send(request(server.url, { body }));
        const error = await failureOf(wrong.text(size - 1));
        assert(error instanceof GatewayError && error.message.endsWith("it is too large"), `${body}: ${error}`);
      }
    }
    transport.close();
  });

  Deno.test(`${name}: redirects, cookies and decompression are disabled`, async () => {
    await using server = startRawUpstream(async (socket, { request }) => {
      const lines = [
        "location: /other",
        "set-cookie: a=b",
        "content-length: 0",
        ...(request === 1 ? ["content-encoding: gzip"] : []),
      ];
      await say(socket, `HTTP/1.1 307 Go on\r\n${lines.join("\r\n")}\r\n\r\n`);
      return "keep";
    });
    const transport = create();
    const first = await transport.send(request(server.url));
    assertEquals([first.status, await first.text(10)], [307, ""]);
    const error = await failureOf(transport.send(request(server.url)));
    assert(error instanceof GatewayError && error.message.includes("compressed"), String(error));
    assertEquals(server.received.filter(({ head }) => /cookie|other/.test(head)), []);
    transport.close();
  });

  Deno.test(`${name}: without idle connections, each call opens a new one`, async () => {
    await using server = startRawUpstream(async (socket) => {
      await say(socket, `${OK}content-length: 5\r\n\r\nhello`);
      return "keep";
    });
    const transport = create({ idleConnections: 0 });
    for (let number = 1; number <= 3; number++) {
      await (await transport.send(request(server.url))).text(100);
      await soon("connection closed", server.ended(number));
    }
    assertEquals(server.accepted, 3);
    transport.close();
  });

  Deno.test(`${name}: a response that continues after cancel() closes its connection`, async () => {
    for (const floods of [false, true]) {
      let sent = 0;
      await using server = startRawUpstream(async (socket) => {
        await say(socket, CHUNKED_EVENTS + chunk("data: [DONE]\n\n"));
        for (; sent < 1_000 && floods; sent++) await say(socket, chunk("x".repeat(50_000)));
        await socket.read(new Uint8Array(1));
        return "close";
      });
      const transport = create();
      const incoming = await transport.send(request(server.url));
      await incoming.read();
      incoming.release();
      await soon("connection closed", server.ended(1));
      assert(sent < 500, `${sent} pieces`);
      transport.close();
    }
  });

  Deno.test(`${name}: an aborted call frees its connection in every phase`, async () => {
    const reason = new GatewayError("timeout", "Left");
    const phases: [phase: string, wire: string, act: (incoming: Incoming) => Promise<unknown>][] = [
      ["before the head", "", () => Promise.reject(new Error("A head came"))],
      ["within the head", "HTTP/1.1 200", () => Promise.reject(new Error("A head came"))],
      ["after the head", CHUNKED_EVENTS, (incoming) => incoming.read()],
      ["within a length", `${OK}content-length: 10\r\n\r\nhello`, (incoming) => incoming.text(100)],
      ["within a long length", `${OK}content-length: 100000\r\n\r\nhello`, (incoming) => incoming.text(100_000)],
      ["within a chunk", `${CHUNKED_EVENTS}10\r\nhello`, (incoming) => incoming.text(100)],
      ["between chunks", CHUNKED_EVENTS + chunk("hello"), async (incoming) => {
        await incoming.read();
        await incoming.read();
      }],
    ];
    for (const [phase, wire, act] of phases) {
      for (const kept of [false, true]) {
        const arrived = Promise.withResolvers<void>();
        await using server = startRawUpstream(async (socket, { body }) => {
          await say(socket, body === "first" ? `${OK}content-length: 0\r\n\r\n` : wire);
          if (body === "first") return "keep";
          arrived.resolve();
          await socket.read(new Uint8Array(1));
          return "close";
        });
        const transport = create();
        if (kept) {
          await (await transport.send(request(server.url, { body: "first" }))).text(1);
          // Some are free a moment later.
          await othersTurns();
        }
        const client = new AbortController();
        const call = transport.send(request(server.url, { signal: client.signal })).then(act);
        const failed = failureOf(call);
        await soon("request", arrived.promise);
        await new Promise((resolve) => setTimeout(resolve, 10));
        client.abort(reason);
        assertEquals(await soon(phase, failed), reason, phase);
        await soon(`${phase}: connection closed`, server.ended(1));
        assertEquals(server.accepted, 1, `${phase}, ${kept ? "kept" : "new"}`);
        transport.close();
      }
    }
    const transport = create();
    const client = new AbortController();
    client.abort(reason);
    assertEquals(await failureOf(transport.send(request("http://127.0.0.1:2", { signal: client.signal }))), reason);
    transport.close();
  });

  Deno.test(`${name}: a call aborted while connecting or sending frees its connection`, async () => {
    const reason = new GatewayError("timeout", "Left");
    {
      await using deaf = await startDeaf();
      const transport = create();
      const client = new AbortController();
      const failed = failureOf(transport.send(request(deaf.url, { signal: client.signal })));
      setTimeout(() => client.abort(reason), 30);
      assertEquals(await soon("making a connection", failed), reason);
      transport.close();
    }
    for (const streamed of [false, true]) {
      const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
      const accepted = listener.accept();
      const transport = create();
      const client = new AbortController();
      const cancelled = Promise.withResolvers<void>();
      let pulls = 0;
      const endless = new ReadableStream<Uint8Array>({
        pull: (controller) => {
          pulls++;
          controller.enqueue(new Uint8Array(100_000));
        },
        cancel: () => cancelled.resolve(),
      });
      const body = streamed ? endless : "x".repeat(30_000_000);
      const url = `http://127.0.0.1:${listener.addr.port}`;
      const failed = failureOf(transport.send(request(url, { body, signal: client.signal })));
      const socket = await accepted;
      await socket.read(new Uint8Array(10));
      // The client stops reading, so sending stops.
      let before = -1;
      while (before !== pulls) {
        before = pulls;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      assert(pulls * 100_000 < 20_000_000, `${pulls} pieces`);
      client.abort(reason);
      assertEquals(await soon("sending a body", failed), reason);
      if (streamed) await soon("stream cancelled", cancelled.promise);
      const rest = new Uint8Array(1_000_000);
      const drained = (async () => {
        while (await socket.read(rest).catch(() => null) !== null);
      })();
      await soon("connection closed", drained);
      socket.close();
      listener.close();
      transport.close();
    }
  });

  Deno.test(`${name}: a response cancelled before or during reading has ended`, async () => {
    await using server = startRawUpstream(async (socket) => {
      await say(socket, CHUNKED_EVENTS + chunk("hello"));
      await socket.read(new Uint8Array(1));
      return "close";
    });
    const transport = create();
    for (let number = 1; number <= 2; number++) {
      const incoming = await transport.send(request(server.url));
      if (number === 2) await incoming.read();
      incoming.cancel();
      incoming.cancel();
      incoming.release();
      await soon("connection closed", server.ended(number));
    }
    transport.close();
  });

  Deno.test(`${name}: a connect timeout and a refused connection are distinguished`, async () => {
    await using deaf = await startDeaf();
    const transport = create();
    const late = await soon("limit", failureOf(transport.send(request(deaf.url, { limits: { connectMs: 100 } }))));
    assert(late instanceof GatewayError && late.message.includes("no connection within 0.1 s"), String(late));
    const short = await failureOf(transport.send(request(deaf.url, { limits: { firstByteMs: 100 } })));
    assertMatch(String(short), /no answer within 0\.1 s/);
    for (const url of [`http://127.0.0.1:${CLOSED_PORT}`, "http://no-such-host.invalid/"]) {
      const refused = await soon("refusal", failureOf(transport.send(request(url))));
      assert(refused instanceof GatewayError && refused.fault === "unreachable", `${url}: ${refused}`);
    }
    transport.close();
  });

  Deno.test(`${name}: a slow client slows the upstream down and is not its fault`, async () => {
    let sent = 0;
    using time = simulateTime(0);
    await using server = startRawUpstream(async (socket) => {
      await say(socket, CHUNKED_EVENTS);
      for (; sent < 400; sent++) await say(socket, chunk("x".repeat(100_000)));
      await say(socket, chunk(""));
      return "keep";
    });
    const transport = create();
    const incoming = await transport.send(request(server.url, { limits: { idleMs: 300 } }));
    await incoming.read();
    await time.pass(800);
    assert(sent < 200, `${sent} pieces`);
    let bytes = 0;
    for (let piece = await incoming.read(); piece !== undefined; piece = await incoming.read()) bytes += piece.length;
    assert(bytes > 39_000_000);
    transport.close();
  });

  Deno.test(`${name}: an early response is passed on while the body is still being sent`, async () => {
    const never = Promise.withResolvers<void>();
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const serving = (async () => {
      const socket = await listener.accept();
      await socket.read(new Uint8Array(10_000));
      await say(socket, "HTTP/1.1 413 Too large\r\ncontent-length: 2\r\n\r\nno");
      await soon(
        "end",
        (async () => {
          while (await socket.read(new Uint8Array(100_000)).catch(() => null) !== null);
        })(),
      );
      socket.close();
    })();
    const transport = create();
    async function* pieces(): AsyncGenerator<Uint8Array> {
      yield new Uint8Array(1_000);
      await never.promise;
    }
    const url = `http://127.0.0.1:${listener.addr.port}`;
    const incoming = await soon("answer", transport.send(request(url, { body: ReadableStream.from(pieces()) })));
    assertEquals([incoming.status, await incoming.text(10)], [413, "no"]);
    never.resolve();
    incoming.cancel();
    transport.close();
    await serving;
    listener.close();
  });

  Deno.test(`${name}: a body that breaks off ends the call`, async () => {
    await using server = startRawUpstream(() => Promise.resolve("keep"));
    const transport = create();
    async function* pieces(): AsyncGenerator<Uint8Array> {
      yield new Uint8Array(1_000);
      await Promise.resolve();
      throw new GatewayError("invalid", "The image breaks off");
    }
    const error = await soon(
      "call",
      failureOf(transport.send(request(server.url, { body: ReadableStream.from(pieces()) }))),
    );
    assert(error instanceof GatewayError, String(error));
    await until("connection closed", () => server.open === 0);
    transport.close();
  });

  Deno.test(`${name}: close() cancels abandoned responses`, async () => {
    await using server = startRawUpstream(async (socket) => {
      await say(socket, CHUNKED_EVENTS + chunk("data: [DONE]\n\n"));
      await socket.read(new Uint8Array(1));
      return "close";
    });
    const transport = create();
    const incoming = await transport.send(request(server.url));
    await incoming.read();
    transport.close();
    incoming.release();
    await soon("connection closed", server.ended(1));
  });

  Deno.test(`${name}: IPv6 addresses work`, async () => {
    await using server = startRawUpstream(async (socket) => {
      await say(socket, `${OK}content-length: 2\r\n\r\nhi`);
      return "keep";
    }, "::1");
    const transport = create();
    assertEquals(await (await transport.send(request(server.url))).text(10), "hi");
    assertMatch(server.received[0]?.head ?? "", /\r\nhost: \[::1\]:\d+\r\n/i);
    transport.close();
  });
}
