import { assert, assertEquals, assertMatch } from "@std/assert";
import type { TestProtocol as Protocol } from "../../upstream/replies.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { soon, until } from "../../support/soon.ts";
import { watchTurns } from "../../support/turns.ts";
import { oneModel as upstreamOf, startGateway } from "../../support/gateway.ts";
import { chunk, CHUNKED_EVENTS, say, startRawUpstream } from "../../upstream/raw.ts";
import { prompt, PROTOCOLS, STREAMED, SUCCESS, WHOLE } from "../../upstream/replies.ts";
import { events, type FakeUpstream, json, type ScriptedAnswer, startUpstream } from "../../upstream/mod.ts";
import { skipInQuick } from "../../support/skip.ts";

/** Long answers of a quick run have a quarter of the length. */
const SHARE = skipInQuick("Three quarters of long answers") ? 4 : 1;

/** Waits until an unread answer comes to rest: every buffer on the way is full. Returns the number of bytes sent. */
async function rest({ requests: [request] }: FakeUpstream): Promise<number> {
  for (let before = -1;;) {
    const sent = request?.sent ?? 0;
    if (sent === before) return sent;
    before = sent;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}

/** Frames up to the first text. */
function starts(protocol: Protocol): string {
  const frames = STREAMED[protocol];
  return frames.slice(0, frames.findIndex((frame) => frame.includes("Hello")) + 1).join("");
}

/**
 * Reads until a text has arrived. Only new data is searched: searching all of a long stream at each read would block
 * this loop, and with it the upstream's time limits.
 */
async function readUntil(reader: ReadableStreamDefaultReader<Uint8Array>, text: string): Promise<string> {
  const decoder = new TextDecoder();
  const pieces: string[] = [];
  let latest = "";
  while (!latest.includes(text)) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`The stream ended before "${text}":\n${latest.slice(-1_000)}`);
    const piece = decoder.decode(value, { stream: true });
    pieces.push(piece);
    latest = latest.slice(-text.length) + piece;
  }
  return pieces.join("");
}

for (const transport of ["http1", "fetch"]) {
  const oneModel = (protocol: Protocol, url: string, more: JsonObject = {}) =>
    upstreamOf(protocol, url, { transport, ...more });

  Deno.test(`${transport}: 50 requests in a row share a connection, whole, streamed, refused and truncated`, async () => {
    for (const protocol of PROTOCOLS) {
      let status = 200;
      await using server = startUpstream(({ body }) => {
        if (status !== 200) return json({ error: { message: "no" } }, { status });
        return body.includes('"stream":true') ? events(STREAMED[protocol].join("")) : json(WHOLE[protocol]);
      });
      await using gateway = startGateway(oneModel(protocol, server.url));
      for (let number = 0; number < 50; number++) {
        status = number % 5 === 4 ? 400 : 200;
        const response = await gateway.ask(protocol, prompt(protocol, { stream: number % 2 === 0 }));
        await response.text();
        assertEquals(response.status, status);
      }
      assertEquals(server.requests.length, 50);
      // The end of an answer may still be on its way when the next request comes.
      assert(server.ports.size <= 5, `${protocol}: ${server.ports.size} connections`);
    }
  });

  Deno.test(`${transport}: a client that does not read slows the upstream down`, async () => {
    for (const [protocol, upstream] of [["chat", "chat"], ["responses", "chat"], ["messages", "messages"]] as const) {
      const [frame = ""] = STREAMED[upstream].filter((frame) => frame.includes("Hello"));
      const [opening = ""] = STREAMED[upstream];
      const long = frame.replace("Hello", "Hello".repeat(10_000));
      const open = upstream === "messages" ? STREAMED.messages[1] ?? "" : "";
      // 200 MB if it is read to the end.
      await using server = startUpstream(() =>
        events(`${upstream === "messages" ? "" : opening}${open}${long}`, { times: 4_000 })
      );
      await using gateway = startGateway(oneModel(upstream, server.url));
      const connection = await Deno.connect({ hostname: "127.0.0.1", port: gateway.port });
      try {
        await connection.write(new TextEncoder().encode(gateway.raw(protocol, prompt(protocol, { stream: true }))));
        await until("answer under way", () => (server.requests[0]?.sent ?? 0) > 0);
        const sent = await rest(server);
        assert(sent < 40_000_000, `${protocol}: ${sent} bytes left the upstream`);
      } finally {
        connection.close();
      }
      await soon("upstream let go", server.requests[0]?.gone ?? Promise.reject(new Error("No request")));
    }
  });

  Deno.test(`${transport}: timeouts: an upstream that never answers is 504`, async () => {
    for (const protocol of PROTOCOLS) {
      const cases: [stream: boolean, timeouts: Record<string, number>, says: RegExp][] = [
        [true, { first_byte_ms: 60 }, /no answer within 0\.06 s/],
        [true, { total_ms: 60 }, /no whole answer within 0\.06 s/],
        // A whole answer arrives when it is done: only the total limit counts.
        [false, { first_byte_ms: 1, idle_ms: 1, total_ms: 60 }, /no whole answer within 0\.06 s/],
      ];
      for (const [stream, timeouts, says] of cases) {
        const never = Promise.withResolvers<void>();
        await using server = startUpstream(() => json(WHOLE[protocol], { before: never.promise }));
        await using gateway = startGateway(oneModel(protocol, server.url, { timeouts }));
        const response = await soon("answer", gateway.ask(protocol, prompt(protocol, { stream })));
        assertEquals(response.status, 504);
        assertMatch(await response.text(), says);
        // On a busy machine the time is over before the request is there.
        await soon("upstream let go", server.requests[0]?.gone ?? Promise.resolve());
        never.resolve();
      }
    }
  });

  Deno.test(`${transport}: timeouts: an upstream that stops midway ends the stream with an error`, async () => {
    for (const protocol of PROTOCOLS) {
      for (
        const [timeouts, says] of [[{ idle_ms: 60 }, "nothing more within 0.06 s"], [
          { total_ms: 150 },
          "no whole answer within 0.15 s",
        ]] as const
      ) {
        const never = Promise.withResolvers<void>();
        const first = new TextEncoder().encode(starts(protocol)).length;
        await using server = startUpstream(() =>
          events(STREAMED[protocol].join(""), { chunkBytes: first, beforeLast: never.promise })
        );
        await using gateway = startGateway(oneModel(protocol, server.url, { timeouts }));
        const response = await gateway.ask(protocol, prompt(protocol, { stream: true }));
        assertEquals(response.status, 200);
        const text = await soon("end of the stream", response.text());
        assert(text.includes("Hello") && text.includes(says) && !text.includes(SUCCESS[protocol]), text);
        await soon("upstream let go", server.requests[0]?.gone ?? Promise.reject(new Error("No request")));
        never.resolve();
      }
    }
  });

  Deno.test(`${transport}: timeouts: a trickle is cut off by the total`, async () => {
    await using trickle = startRawUpstream(async (connection) => {
      await say(connection, CHUNKED_EVENTS + chunk(starts("chat")));
      for (let number = 0; number < 200; number++) {
        await say(connection, chunk(`: ${number}\n\n`));
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    });
    await using cut = startGateway(oneModel("chat", trickle.url, { timeouts: { idle_ms: 10_000, total_ms: 200 } }));
    const response = await cut.ask("chat", prompt("chat", { stream: true }));
    assertMatch(await soon("end of the stream", response.text()), /no whole answer within 0\.2 s/);
  });

  Deno.test(`${transport}: timeouts: a slow client is not the upstream's fault`, async () => {
    const idleMs = 1_000;
    const [opening = "", hello = ""] = STREAMED.chat;
    const long = hello.replace("Hello", "Hello ".repeat(10_000));
    const body = opening + long.repeat(300) + STREAMED.chat.slice(2).join("");
    await using fast = startUpstream(() => events(body, { chunkBytes: 100_000 }));
    await using gateway = startGateway(oneModel("chat", fast.url, { timeouts: { idle_ms: idleMs } }));
    const slow = await gateway.ask("chat", prompt("chat", { stream: true }));
    const reader = slow.body?.getReader();
    assert(reader !== undefined);
    await readUntil(reader, "Hello");
    assert(await rest(fast) < body.length);
    await new Promise((resolve) => setTimeout(resolve, 2 * idleMs));
    assert(!(await readUntil(reader, "[DONE]")).includes("nothing more within"));
    assertEquals(await reader.read(), { done: true, value: undefined });
  });

  Deno.test(`${transport}: keep-alives bridge the wait for a slow first event`, async () => {
    const keepAlives: Readonly<Record<Protocol, string>> = {
      chat: ": keep-alive\n",
      responses: ": keep-alive\n",
      messages: 'event: ping\ndata: {"type": "ping"}\n\n',
    };
    await Promise.all(PROTOCOLS.map(async (protocol) => {
      const ready = Promise.withResolvers<void>();
      await using server = startUpstream(() => events(STREAMED[protocol].join(""), { beforeLast: ready.promise }));
      await using gateway = startGateway({ ...oneModel(protocol, server.url), keep_alive_seconds: 1 });
      const response = await gateway.ask(protocol, prompt(protocol, { stream: true }));
      const reader = response.body?.getReader();
      assert(reader !== undefined);
      const { value } = await reader.read();
      // More than one where this machine was busy.
      const said = new TextDecoder().decode(value);
      assert(said !== "" && said.replaceAll(keepAlives[protocol], "") === "", said);
      ready.resolve();
      const text = await readUntil(reader, SUCCESS[protocol]);
      assert(text.includes("Hello"), text);
      await reader.cancel();
    }));
  });

  Deno.test(`${transport}: a reset connection is a failure of the upstream`, async () => {
    // Closing a connection with unread bytes resets it.
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const serving = (async () => {
      for await (const connection of listener) {
        await connection.read(new Uint8Array(10));
        connection.close();
      }
    })();
    const url = `http://127.0.0.1:${listener.addr.port}`;
    try {
      for (const protocol of PROTOCOLS) {
        await using gateway = startGateway(oneModel(protocol, url));
        for (const stream of [false, true]) {
          const response = await gateway.ask(protocol, prompt(protocol, { stream }));
          assertEquals(response.status, 502, await response.text());
        }
      }
    } finally {
      listener.close();
      await serving;
    }
  });

  Deno.test(`${transport}: floods: excessive data is refused and not read further`, async () => {
    const stream = { "content-type": "text/event-stream" };
    const cases: [name: string, streamed: boolean, ScriptedAnswer, status: number, most: number][] = [
      ["an answer without an end", false, { body: "x".repeat(100_000), times: 4_000 }, 502, 120_000_000],
      ["an error without an end", false, { body: "x".repeat(100_000), times: 4_000, status: 503 }, 503, 40_000_000],
      ["a redirect without an end", true, { body: "x".repeat(100_000), times: 4_000, status: 302 }, 502, 40_000_000],
      ["a line without an end", true, { body: "x".repeat(100_000), times: 4_000, headers: stream }, 502, 60_000_000],
      [
        "an event without an end",
        true,
        { body: `data: ${"x".repeat(99_990)}\n`, times: 4_000, headers: stream },
        502,
        60_000_000,
      ],
    ];
    for (const [name, streamed, script, status, most] of cases) {
      await using server = startUpstream(() => script);
      await using gateway = startGateway(oneModel("chat", server.url));
      const response = await gateway.ask("chat", prompt("chat", { stream: streamed }));
      assertEquals(response.status, status, `${name}: ${await response.text()}`);
      await soon(name, server.requests[0]?.gone ?? Promise.reject(new Error("No request")));
      assert((server.requests[0]?.sent ?? 0) < most, `${name}: ${server.requests[0]?.sent}`);
    }
  });

  Deno.test(`${transport}: long answers yield to the event loop`, async () => {
    const [opening = "", hello = ""] = STREAMED.chat;
    const piece = hello.replace("Hello", "Hello ".repeat(170));
    const count = Math.ceil(20_000_000 / SHARE / piece.length);
    const body = opening + piece.repeat(count) + STREAMED.chat.slice(2).join("");
    const whole = {
      ...WHOLE.chat,
      choices: [{
        index: 0,
        message: { role: "assistant", content: "x\\n".repeat(3_400_000 / SHARE) },
        finish_reason: "stop",
      }],
    };
    await using server = startUpstream((request) =>
      request.body.includes('"stream":true') ? events(body, { chunkBytes: 64_000 }) : json(whole)
    );
    await using gateway = startGateway(oneModel("chat", server.url));
    using turns = watchTurns();
    for (const protocol of ["chat", "messages"] as const) {
      turns.count();
      const response = await gateway.ask(protocol, prompt(protocol, { stream: true }));
      const text = await response.text();
      const count = turns.count();
      assert(text.length > 19_000_000 / SHARE && text.includes(SUCCESS[protocol]), `${protocol}: ${text.length}`);
      assert(count > 30 / SHARE, `${protocol}: only ${count} turns`);
      const answer = await gateway.ask(protocol, prompt(protocol));
      assert((await answer.text()).length > 10_000_000 / SHARE);
    }
    const longest = turns.longest();
    // One turn parses the whole answer of 10 MB. Client, gateway and upstream share this loop.
    assert(longest < 3_000, `${longest} ms`);
  });
}
