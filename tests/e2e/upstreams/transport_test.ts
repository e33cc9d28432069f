import { assert, assertEquals } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { skipInQuick } from "../../support/skip.ts";
import { soon, until } from "../../support/soon.ts";
import { watchTurns } from "../../support/turns.ts";
import { oneModel as upstreamOf, startGateway } from "../../support/gateway.ts";
import { prompt, PROTOCOLS, STREAMED, SUCCESS, WHOLE } from "../../upstream/replies.ts";
import { events, type FakeUpstream, json, startUpstream } from "../../upstream/mod.ts";

/** Waits until an unread answer comes to rest: every buffer on the way is full. Returns the number of bytes sent. */
async function rest({ requests: [request] }: FakeUpstream): Promise<number> {
  for (let before = -1;;) {
    const sent = request?.sent ?? 0;
    if (sent === before) return sent;
    before = sent;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}

const isSample = skipInQuick("Slow clients and long answers of each protocol, with both transports");
const PAIRS = [["messages", "messages"], ["responses", "chat"], ["chat", "chat"]] as const;

for (const [pair, transport] of ["http1", "fetch"].entries()) {
  const oneModel = (protocol: Protocol, url: string, more: JsonObject = {}) =>
    upstreamOf(protocol, url, { transport, ...more });

  Deno.test(`${transport}: 20 requests in a row share a connection, whole, streamed and refused`, async () => {
    for (const protocol of PROTOCOLS) {
      let status = 200;
      await using server = startUpstream(({ stream }) => {
        if (status !== 200) return json({ error: { message: "no" } }, { status });
        return stream ? events(STREAMED[protocol].join("")) : json(WHOLE[protocol]);
      });
      await using gateway = startGateway(oneModel(protocol, server.url));
      for (let number = 0; number < 20; number++) {
        status = number % 5 === 4 ? 400 : 200;
        const response = await gateway.ask(protocol, prompt(protocol, { stream: number % 2 === 0 }));
        await response.text();
        assertEquals(response.status, status);
      }
      assertEquals(server.requests.length, 20);
      // The end of an answer may still be on its way when the next request comes.
      assert(server.ports.size <= 5, `${protocol}: ${server.ports.size} connections`);
    }
  });

  Deno.test(`${transport}: a client that does not read slows the upstream down`, async () => {
    for (const [protocol, upstream] of PAIRS.filter((_, index) => !isSample || index === pair)) {
      const [frame = ""] = STREAMED[upstream].filter((frame) => frame.includes("Hello"));
      const [opening = ""] = STREAMED[upstream];
      const long = frame.replace("Hello", "telecommunications ".repeat(3_000));
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

  Deno.test(`${transport}: long answers yield to the event loop`, async () => {
    const [opening = "", hello = ""] = STREAMED.chat;
    const piece = hello.replace("Hello", "Hello ".repeat(170));
    const count = Math.ceil(4_000_000 / piece.length);
    const body = opening + piece.repeat(count) + STREAMED.chat.slice(2).join("");
    const whole = {
      ...WHOLE.chat,
      choices: [{
        index: 0,
        message: { role: "assistant", content: "x\\n".repeat(850_000) },
        finish_reason: "stop",
      }],
    };
    await using server = startUpstream((request) =>
      request.body.includes('"stream":true') ? events(body, { chunkBytes: 64_000 }) : json(whole)
    );
    await using gateway = startGateway(oneModel("chat", server.url));
    using turns = watchTurns();
    for (const protocol of isSample ? ["messages"] as const : ["chat", "messages"] as const) {
      turns.count();
      const response = await gateway.ask(protocol, prompt(protocol, { stream: true }));
      const text = await response.text();
      const count = turns.count();
      assert(text.length > 3_500_000 && text.includes(SUCCESS[protocol]), `${protocol}: ${text.length}`);
      assert(count > 7, `${protocol}: only ${count} turns`);
      const answer = await gateway.ask(protocol, prompt(protocol));
      assert((await answer.text()).length > 2_500_000);
    }
    const longest = turns.longestWork();
    // One turn parses the whole answer. Client, gateway and upstream share this loop.
    assert(longest < 3_000, `${longest} ms`);
  });
}
