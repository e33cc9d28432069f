import { assert, assertEquals } from "@std/assert";
import { shutDownServer } from "../../../lib/cli/shutdown.ts";
import { stopRequests, stopTextRequests } from "../../../lib/gateway.ts";
import { createDrain } from "../../../lib/server/drain.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { type SimulatedTime, simulateTime } from "../../support/simulated_time.ts";
import { startDeaf } from "../../upstream/deaf_host.ts";
import { skipInQuick } from "../../support/skip.ts";
import { model, startGateway, type TestGateway, upstream } from "../../support/gateway.ts";
import { chunk, CHUNKED_EVENTS, type RawPlay, say, startRawUpstream } from "../../upstream/raw.ts";
import { prompt, SUCCESS } from "../../upstream/replies.ts";

/** Tolerance for the time at which a limit is noticed, in milliseconds. */
const NEAR_MS = 250;
/**
 * Real time in which a request reaches its waiting point, and the longest in which an answer arrives, in milliseconds.
 */
const SETTLE_MS = 150;
const LONGEST_MS = 5_000;
const LOOK_MS = 10;
const BEGIN = Date.UTC(2027, 0, 1);
const TIMEOUTS = { connect_ms: 2_000, first_byte_ms: 3_000, idle_ms: 2_500, total_ms: 6_000 };
const LIMITS = {
  body_gap_ms: 2_000,
  body_grace_ms: 3_000,
  body_min_bytes_per_second: 1_024,
  body_total_ms: 5_000,
  answer_unread_ms: 4_000,
};
const DRAIN_MS = 3_500;
/** Time between two reads of a slow client. */
const READ_EVERY_MS = 50;
/** Longer than any test. */
const KEEP_ALIVE_SECONDS = 3_600;

/** Input of a play. */
interface Play {
  gateway: TestGateway;
  /** Connections that end with the play, however it ends: the gateway's own end waits for them. */
  connections: DisposableStack;
  /** Resolves when so much simulated time has passed. */
  pause(ms: number): Promise<void>;
  /** Resolves when so much real time has passed. */
  settle(ms: number): Promise<void>;
}

/** A phase with a known time limit. */
interface Phase {
  name: string;
  limitMs: number;
  /** The upstream's behaviour after the request; absent: it is never called, or has another address. */
  upstream?: RawPlay;
  /** An upstream of another kind. */
  address?: () => Promise<{ url: string } & AsyncDisposable>;
  /** Real time after which the phase waits, in milliseconds; absent: the usual one. */
  settleMs?: number;
  /** Plays the client. Resolves with the error it received. */
  client(play: Play): Promise<string>;
  /** The expected error. */
  says: RegExp;
}

const never = new Promise<never>(() => {});
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
/** One event with text; `padding` is ignored by readers. */
function piece(content: string, padding = ""): string {
  const event = {
    id: "1",
    object: "chat.completion.chunk",
    created: 1,
    model: "real-one",
    choices: [{ index: 0, delta: { content } }],
    padding,
  };
  return chunk(`data: ${JSON.stringify(event)}\n\n`);
}

/** Asks, and reads the answer to its end. */
function asks(more: JsonObject): Phase["client"] {
  return async ({ gateway }) => {
    const response = await gateway.ask("chat", prompt("chat", more));
    return `${response.status} ${await response.text()}`;
  };
}

/** Sends the beginning of a request, and pieces of its body that never complete it. */
function writes(target: string, { bytes, everyMs }: { bytes: number; everyMs: number }): Phase["client"] {
  return async ({ gateway, connections }) => {
    using connection = connections.use(await Deno.connect({ hostname: "127.0.0.1", port: gateway.port }));
    const type = target.includes("images") ? "multipart/form-data; boundary=x" : "application/json";
    await say(
      connection,
      `POST ${target} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${gateway.key.key}\r\ncontent-type: ${type}\r\n` +
        `content-length: 1000000\r\n\r\n`,
    );
    const over = new AbortController();
    const writing = (async () => {
      let part = type.startsWith("multipart") ? '--x\r\ncontent-disposition: form-data; name="prompt"\r\n\r\n' : '"';
      while (!over.signal.aborted) {
        await say(connection, part.padEnd(bytes, "x")).catch(() => over.abort());
        part = "";
        await pause(everyMs);
      }
    })();
    const buffer = new Uint8Array(10_000);
    const read = await connection.read(buffer) ?? 0;
    over.abort();
    void writing;
    return new TextDecoder().decode(buffer.subarray(0, read));
  };
}

/**
 * Requests a stream and reads this many bytes at a time, possibly none; returns the ledger's status. It continues after
 * time stops: a cut stream ends once its reader has made room for the error.
 */
function reads(bytes: number): Phase["client"] {
  return async ({ gateway, connections, pause, settle }) => {
    using connection = connections.use(await Deno.connect({ hostname: "127.0.0.1", port: gateway.port }));
    let rest = Promise.resolve();
    await say(connection, gateway.raw("chat", prompt("chat", { stream: true })));
    for (;;) {
      await gateway.gateway.ledger.flush();
      const [entry] = await gateway.store.ledger.entries({ after: 0, limit: 1 });
      if (entry !== undefined) {
        // The last of the real timers: none is left behind.
        await rest;
        return entry.ending;
      }
      if (bytes > 0) await connection.read(new Uint8Array(bytes));
      rest = settle(2 * READ_EVERY_MS);
      await Promise.race([pause(READ_EVERY_MS), rest]);
    }
  };
}

/** Requests a stream of a gateway that shuts down. */
async function isDrained(play: Play): Promise<string> {
  const { gateway } = play.gateway;
  const answer = asks({ stream: true })(play);
  while (gateway.inFlight.count("text") === 0) await pause(0);
  void shutDownServer({
    server: { shutdown: () => never },
    drain: createDrain(),
    inFlight: gateway.inFlight,
    stopTexts: () => stopTextRequests(gateway),
    stopAll: () => stopRequests(gateway),
    second: never,
    times: { readyDelayMs: 0, drainMs: DRAIN_MS, imagesDrainMs: DRAIN_MS },
    log: () => {},
  });
  return await answer;
}

/** A host that accepts connections and never answers. */
function silentHost(): Promise<{ url: string } & AsyncDisposable> {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const connections: Deno.TcpConn[] = [];
  const accepting = (async () => {
    for await (const connection of listener) connections.push(connection);
  })();
  return Promise.resolve({
    url: `https://127.0.0.1:${listener.addr.port}`,
    async [Symbol.asyncDispose]() {
      listener.close();
      await accepting;
      for (const connection of connections) connection.close();
    },
  });
}

/** Until the other side ends the connection. */
async function hush(connection: Deno.TcpConn): Promise<void> {
  while (await connection.read(new Uint8Array(1_000)) !== null);
}

const silent: RawPlay = hush;
const head = CHUNKED_EVENTS + piece("Hello");
const trickles: RawPlay = async (connection) => {
  await say(connection, CHUNKED_EVENTS);
  let isOver = false;
  const over = hush(connection).finally(() => isOver = true);
  while (!isOver) {
    await say(connection, piece("x"));
    await Promise.race([pause(400), over]);
  }
};
const floods: RawPlay = async (connection) => {
  await say(connection, CHUNKED_EVENTS);
  const text = piece("x", "word ".repeat(20_000));
  for (;;) await say(connection, text);
};

const PHASES: readonly Phase[] = [
  {
    name: "connection",
    limitMs: TIMEOUTS.connect_ms,
    address: startDeaf,
    client: asks({}),
    says: /^504 .*no connection within 2 s/,
  },
  {
    name: "TLS",
    limitMs: TIMEOUTS.connect_ms,
    address: silentHost,
    client: asks({}),
    says: /^504 .*no connection within 2 s/,
  },
  {
    name: "beginning of a stream",
    limitMs: TIMEOUTS.first_byte_ms,
    upstream: silent,
    client: asks({ stream: true }),
    says: /^504 .*no answer within 3 s/,
  },
  {
    name: "first event of a stream",
    limitMs: TIMEOUTS.idle_ms,
    upstream: (connection) => say(connection, CHUNKED_EVENTS).then(() => hush(connection)),
    client: asks({ stream: true }),
    says: /^504 .*within 2.5 s/,
  },
  {
    name: "pause within a stream",
    limitMs: TIMEOUTS.idle_ms,
    upstream: (connection) => say(connection, head).then(() => hush(connection)),
    client: asks({ stream: true }),
    says: /^200 .*Hello.*\n\n.*nothing more within 2.5 s/s,
  },
  {
    name: "pause within a whole answer",
    limitMs: TIMEOUTS.idle_ms,
    upstream: (connection) =>
      say(connection, 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{"id"').then(
        () => hush(connection),
      ),
    client: asks({}),
    says: /^504 .*nothing more within 2.5 s/,
  },
  { name: "whole answer", limitMs: TIMEOUTS.total_ms, upstream: silent, client: asks({}), says: /^504 .*within 6 s/ },
  {
    name: "whole stream",
    limitMs: TIMEOUTS.total_ms,
    upstream: trickles,
    client: asks({ stream: true }),
    says: /^200 .*no whole answer within 6 s/s,
  },
  {
    name: "silence within a body",
    limitMs: LIMITS.body_gap_ms,
    client: writes("/v1/chat/completions", { bytes: 30_000, everyMs: 60_000 }),
    says: /^HTTP\/1.1 408 /,
  },
  {
    name: "rate of a body",
    limitMs: LIMITS.body_grace_ms,
    client: writes("/v1/chat/completions", { bytes: 100, everyMs: 250 }),
    says: /^HTTP\/1.1 408 /,
  },
  {
    name: "whole body",
    limitMs: LIMITS.body_total_ms,
    client: writes("/v1/chat/completions", { bytes: 1_000, everyMs: 250 }),
    says: /^HTTP\/1.1 408 /,
  },
  {
    name: "silence within a form",
    limitMs: LIMITS.body_gap_ms,
    client: writes("/v1/images/edits", { bytes: 3_000, everyMs: 60_000 }),
    says: /^HTTP\/1.1 408 /,
  },
  {
    name: "whole form",
    limitMs: LIMITS.body_total_ms,
    client: writes("/v1/images/edits", { bytes: 1_000, everyMs: 250 }),
    says: /^HTTP\/1.1 408 /,
  },
  {
    name: "stream that is not read",
    limitMs: LIMITS.answer_unread_ms,
    upstream: floods,
    settleMs: 1_000,
    client: reads(0),
    says: /^client_disconnected$/,
  },
  {
    name: "whole stream that is read slowly",
    limitMs: TIMEOUTS.total_ms,
    upstream: floods,
    settleMs: 1_000,
    client: reads(65_536),
    says: /^client_disconnected$/,
  },
  {
    name: "end of the gateway",
    limitMs: DRAIN_MS,
    upstream: trickles,
    client: isDrained,
    says: /^200 .*shutting down/s,
  },
];

async function playAt(
  { url }: { url: string },
  transport: string,
  { phase, time }: { phase: Phase; time: SimulatedTime },
) {
  await using gateway = startGateway({
    upstreams: { one: upstream("openai-compatible", url, { transport, timeouts: TIMEOUTS }) },
    models: [model("acme/one", [{ upstream: "one", model: "real-one" }])],
    resource_limits: LIMITS,
    keep_alive_seconds: KEEP_ALIVE_SECONDS,
    routing: { attempts: 1 },
  }, { now: time.now });
  using connections = new DisposableStack();
  let outcome: string | undefined;
  void phase.client({ gateway, connections, pause, settle: time.settle }).then(
    (text) => outcome = text,
    (error) => outcome = String(error),
  );
  await time.settle(phase.settleMs ?? SETTLE_MS);
  await time.pass(phase.limitMs - NEAR_MS);
  await time.settle(SETTLE_MS);
  assertEquals(outcome, undefined, `${phase.name}: too early`);
  await time.pass(2 * NEAR_MS);
  // On its way to the client no time passes.
  for (let ms = 0; outcome === undefined && ms < LONGEST_MS; ms += LOOK_MS) await time.settle(LOOK_MS);
  assert(outcome !== undefined, `${phase.name}: too late`);
  assert(phase.says.test(outcome) && !outcome.includes(SUCCESS.chat), `${phase.name}: ${outcome.slice(0, 1_000)}`);
  await gateway.gateway.backgroundTasks.done();
  await gateway.gateway.ledger.flush();
  assertEquals(await gateway.store.ledger.holds(), [], phase.name);
  assertEquals(gateway.gateway.inFlight.count(), 0, phase.name);
}

for (const transport of ["http1", "fetch"]) {
  const ignore = transport === "fetch" && skipInQuick("Timeouts of phases with the transport fetch");
  for (const phase of PHASES) {
    // A slow client does not count against an upstream.
    if (transport === "fetch" && phase.upstream === undefined && phase.address === undefined) continue;
    const name = `${transport}: the timeout of a phase is exact to a quarter of a second: ${phase.name}`;
    Deno.test(name, { ignore }, async () => {
      await using raw = await (phase.address?.() ?? startRawUpstream(phase.upstream ?? silent));
      using time = simulateTime(BEGIN);
      await playAt(raw, transport, { phase, time });
    });
  }
}
