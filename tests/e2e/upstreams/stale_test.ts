import { assert, assertEquals } from "@std/assert";
import { simulateTime } from "../../support/simulated_time.ts";
import { model, oneModel, startGateway, upstream } from "../../support/gateway.ts";
import { chunk, CHUNKED_EVENTS, say, startRawUpstream } from "../../upstream/raw.ts";
import { prompt, PROTOCOLS, STREAMED, WHOLE } from "../../upstream/replies.ts";

/** An answer as bytes. */
function answer(value: unknown): string {
  const text = JSON.stringify(value);
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${
    new TextEncoder().encode(text).length
  }\r\n\r\n${text}`;
}

/** A stream of events as bytes. */
function stream(frames: readonly string[]): string {
  return CHUNKED_EVENTS + chunk(frames.join("")) + chunk("");
}

Deno.test("a kept connection that was just closed is not a failure: the request is sent on a new one", async () => {
  for (const protocol of PROTOCOLS) {
    for (const then of ["close", "reset"] as const) {
      for (const streams of [false, true]) {
        // Each connection carries one answer, and is closed when the next request is sent on it.
        await using server = startRawUpstream(async (socket, { request }) => {
          if (request > 0) return then;
          await say(socket, streams ? stream(STREAMED[protocol]) : answer(WHOLE[protocol]));
          return "keep";
        });
        await using gateway = startGateway(oneModel(protocol, server.url), { breakers: true });
        for (let number = 0; number < 4; number++) {
          const response = await gateway.ask(protocol, prompt(protocol, { stream: streams }));
          const text = await response.text();
          assertEquals([response.status, response.headers.get("x-sluice-attempts")], [200, "1"], text);
        }
        assertEquals(gateway.logs, []);
        assertEquals(gateway.gateway.health.snapshot().map(({ failures, state }) => [failures, state]), [[
          0,
          "closed",
        ]]);
        assert(server.received.length > 5, `${server.received.length}`);
      }
    }
  }
});

Deno.test("the retry uses a new connection, not another kept one", async () => {
  const both = Promise.withResolvers<void>();
  let firsts = 0;
  await using server = startRawUpstream(async (socket, { request }) => {
    if (request > 0) return "close";
    if (++firsts === 2) both.resolve();
    await both.promise;
    await say(socket, answer(WHOLE.chat));
    return "keep";
  });
  await using gateway = startGateway(oneModel("chat", server.url));
  const ask = async () => {
    const response = await gateway.ask("chat", prompt("chat"));
    return [response.status, (await response.text()).includes("Hello there")];
  };
  assertEquals(await Promise.all([ask(), ask()]), [[200, true], [200, true]]);
  assertEquals(await ask(), [200, true]);
  assertEquals([server.accepted, server.received.length], [3, 4]);
});

Deno.test("a new connection has no retry: its failure leads to another target", async () => {
  let well = true;
  await using server = startRawUpstream(async (socket) => {
    if (!well) return "close";
    await say(socket, answer(WHOLE.chat));
    return "keep";
  });
  await using second = startRawUpstream(async (socket) => {
    await say(socket, answer(WHOLE.chat));
    return "keep";
  });
  await using gateway = startGateway({
    upstreams: { first: upstream("openai", server.url), second: upstream("openai", second.url) },
    models: [model("acme/one", [
      { upstream: "first", model: "real-one", protocol: "chat" },
      { upstream: "second", model: "real-one", protocol: "chat", priority: 1 },
    ])],
  });
  await (await gateway.ask("chat", prompt("chat"))).text();
  well = false;
  const response = await gateway.ask("chat", prompt("chat"));
  assertEquals([response.status, response.headers.get("x-sluice-attempts")], [200, "2"], await response.text());
  assertEquals([server.received.length, second.received.length], [3, 1]);
  assertEquals(gateway.logs.map(({ event, upstream }) => [event, upstream]), [["target_failed", "first"]]);
});

Deno.test("a kept connection that ends after a second, or within an answer, fails the attempt at once", async () => {
  for (const [content, waitMs] of [["HTTP", 0], ["", 1_050]] as const) {
    using time = simulateTime(0);
    await using server = startRawUpstream(async (socket, { request }) => {
      if (request > 0) {
        await time.pass(waitMs);
        await say(socket, content);
        return "close";
      }
      await say(socket, answer(WHOLE.chat));
      return "keep";
    });
    await using gateway = startGateway(oneModel("chat", server.url));
    await (await gateway.ask("chat", prompt("chat"))).text();
    const response = await gateway.ask("chat", prompt("chat"));
    assertEquals(response.status, 502, await response.text());
    assertEquals(server.received.length, 2);
  }
});
