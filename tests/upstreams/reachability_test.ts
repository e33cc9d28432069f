import { assert, assertEquals, assertMatch } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import { createHostProbes } from "../../lib/upstreams/reachability.ts";
import type { TimeLimits, Transport } from "../../lib/upstreams/transport.ts";
import { startDeaf } from "../upstream/deaf_host.ts";
import { model, oneModel, startGateway, upstream } from "../support/gateway.ts";
import { simulateTime } from "../support/simulated_time.ts";
import { startRawUpstream } from "../upstream/raw.ts";
import { prompt, PROTOCOLS, WHOLE } from "../upstream/replies.ts";
import { json, startUpstream } from "../upstream/mod.ts";
import { TRANSPORTS } from "./transports.ts";

const LIMITS: TimeLimits = { connectMs: 400, firstByteMs: 60_000, idleMs: 60_000, totalMs: 60_000 };
/** Allowed delay of a time limit, in milliseconds. */
const LATE_MS = 30_000;

/** The error of a call, and its time in milliseconds. */
async function failureOf(
  transport: Transport,
  { url, ...limits }: Partial<TimeLimits> & { url: string },
): Promise<{ error: unknown; ms: number }> {
  const started = performance.now();
  try {
    const signal = new AbortController().signal;
    const incoming = await transport.send({ url, headers: {}, body: "{}", signal, limits: { ...LIMITS, ...limits } });
    await incoming.text(1_000);
    return { error: undefined, ms: performance.now() - started };
  } catch (error) {
    return { error, ms: performance.now() - started };
  } finally {
    transport.close();
  }
}

for (const [name, create] of Object.entries(TRANSPORTS)) {
  Deno.test(`${name}: a host that accepts no connection is given up at the connect timeout`, async () => {
    await using deaf = await startDeaf();
    for (const connectMs of [100, 400]) {
      const { error, ms } = await failureOf(create(), { url: deaf.url, connectMs });
      assert(error instanceof GatewayError, String(error));
      assertEquals([error.kind, error.message], [
        "timeout",
        `The upstream took too long: no connection within ${connectMs / 1000} s`,
      ]);
      assert(ms >= connectMs && ms < connectMs + LATE_MS, `${ms} ms`);
    }
  });

  Deno.test(`${name}: the shorter timeout counts for a host that accepts no connection`, async () => {
    await using deaf = await startDeaf();
    const { error } = await failureOf(create(), { url: deaf.url, connectMs: 1_000, firstByteMs: 100 });
    assertMatch(String(error), /no answer within 0\.1 s/);
  });

  Deno.test(`${name}: a slow host counts as connected, on a new and on a kept connection`, async () => {
    using time = simulateTime(0);
    let arrived = Promise.withResolvers<void>();
    let thinking: Promise<void> | undefined;
    await using server = startUpstream(() => {
      arrived.resolve();
      return json({}, thinking === undefined ? {} : { before: thinking });
    });
    const transport = create();
    const limits = { ...LIMITS, connectMs: 100 };
    for (const thinks of [true, false, true]) {
      arrived = Promise.withResolvers();
      const thought = Promise.withResolvers<void>();
      thinking = thinks ? thought.promise : undefined;
      const { signal } = new AbortController();
      const sent = transport.send({ url: server.url, headers: {}, body: "{}", signal, limits });
      await arrived.promise;
      if (thinks) await time.pass(500);
      thought.resolve();
      assertEquals(await (await sent).text(100), "{}");
    }
    assertEquals(server.ports.size, 1);
    transport.close();
  });

  Deno.test(`${name}: a host that answers in time is never probed`, async () => {
    await using server = startRawUpstream(async (connection) => {
      await connection.write(new TextEncoder().encode("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"));
    });
    for (let number = 1; number <= 5; number++) {
      const { error } = await failureOf(create(), { url: server.url, connectMs: 60_000 });
      assertEquals(error, undefined);
      assertEquals(server.accepted, number);
    }
  });

  Deno.test(`${name}: a host that has sent a head is not probed while its answer goes on`, async () => {
    using time = simulateTime(0);
    const later = Promise.withResolvers<void>();
    await using server = startRawUpstream(async (connection) => {
      await connection.write(new TextEncoder().encode("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"));
      await later.promise;
      await connection.write(new TextEncoder().encode("{}"));
    });
    const transport = create();
    const { signal } = new AbortController();
    const limits = { ...LIMITS, connectMs: 200 };
    const incoming = await transport.send({ url: server.url, headers: {}, body: "{}", signal, limits });
    await time.pass(1_000);
    later.resolve();
    assertEquals([await incoming.text(100), server.accepted], ["{}", 1]);
    transport.close();
  });
}

Deno.test("one probe serves all waiting calls, and a refused connection ends it", async () => {
  const knocks: ReturnType<typeof Promise.withResolvers<void>>[] = [];
  const hosts = createHostProbes(() => {
    const knock = Promise.withResolvers<void>();
    knocks.push(knock);
    return knock.promise;
  });
  const host = hosts.of("https://one.example/v1/a");
  assertEquals(hosts.of("https://one.example/v2"), host);
  assert(hosts.of("https://two.example/v1") !== host && hosts.of("http://one.example/v1") !== host);
  let signs = 0;
  host.nextSign(() => signs++);
  host.nextSign(() => signs++)();
  host.probe(1_000);
  host.probe(1_000);
  assertEquals(knocks.length, 1);
  knocks[0]?.reject(new Error("refused"));
  await new Promise((resolve) => setTimeout(resolve, 0));
  assertEquals(signs, 1);
  host.probe(1_000);
  assertEquals(knocks.length, 2);
  knocks[1]?.resolve();
  await new Promise((resolve) => setTimeout(resolve, 0));
  hosts.close();
});

Deno.test("probes go to the addresses of requests", async () => {
  const connects: [string, number][] = [];
  const hosts = createHostProbes(({ hostname, port }) => {
    connects.push([hostname, port]);
    return Promise.resolve();
  });
  for (const url of ["https://a.example/v1", "http://a.example/v1", "http://[::1]:81/v1", "https://a.example:444"]) {
    hosts.of(url).probe(1_000);
  }
  assertEquals(connects, [["a.example", 443], ["a.example", 80], ["::1", 81], ["a.example", 444]]);
  await new Promise((resolve) => setTimeout(resolve, 0));
});

Deno.test("a connect timeout is 504 for every protocol, after trying another target", async () => {
  await using deaf = await startDeaf();
  await using second = startUpstream(() => json(WHOLE.chat));
  const short = { timeouts: { connect_ms: 100 } };
  for (const protocol of PROTOCOLS) {
    for (const stream of [false, true]) {
      await using gateway = startGateway(oneModel(protocol, deaf.url, short));
      const response = await gateway.ask(protocol, prompt(protocol, { stream }));
      assertEquals(response.status, 504);
      assertMatch(await response.text(), /no connection within 0\.1 s/);
    }
  }
  await using gateway = startGateway({
    upstreams: { deaf: upstream("openai", deaf.url, short), second: upstream("openai", second.url) },
    models: [model("acme/one", [
      { upstream: "deaf", model: "real-one", protocol: "chat" },
      { upstream: "second", model: "real-one", protocol: "chat", priority: 1 },
    ])],
  });
  const response = await gateway.ask("chat", prompt("chat", { stream: false }));
  assertEquals(response.status, 200, await response.text());
});

Deno.test("models and targets may have timeouts of their own", async () => {
  const never = Promise.withResolvers<void>();
  await using server = startUpstream(() => json(WHOLE.chat, { before: never.promise }));
  const cases: [row: JsonObject, target: JsonObject, says: RegExp][] = [
    [{ timeouts: { total_ms: 60 } }, {}, /no whole answer within 0\.06 s/],
    [{ timeouts: { total_ms: 60 } }, { timeouts: { total_ms: 90 } }, /no whole answer within 0\.09 s/],
    [{}, { timeouts: { total_ms: 70 } }, /no whole answer within 0\.07 s/],
    [{ timeouts: { idle_ms: 1 } }, {}, /no whole answer within 0\.12 s/],
  ];
  for (const [row, target, says] of cases) {
    await using gateway = startGateway({
      upstreams: { one: upstream("openai", server.url, { timeouts: { total_ms: 120 } }) },
      models: [model("acme/one", [{ upstream: "one", model: "real-one", protocol: "chat", ...target }], row)],
    });
    const response = await gateway.ask("chat", prompt("chat", { stream: false }));
    assertEquals(response.status, 504);
    assertMatch(await response.text(), says);
  }
  never.resolve();
});
