import { assert, assertEquals } from "@std/assert";
import type { Protocol } from "../../../lib/protocols/canonical/types.ts";
import { oneModel, startGateway } from "../../support/gateway.ts";
import { startServer } from "../../fault/start_server.ts";
import { until } from "../../support/soon.ts";
import { prompt } from "../../upstream/replies.ts";
import { rounds, skipInQuick } from "../../support/skip.ts";

/** Ways in which a client disconnects. */
const MANNERS = {
  /** It closes its connection. */
  close: "everything is read before",
  /** It closes its connection with bytes of the answer unread, which resets it. */
  reset: "something is left unread",
  /** The client closes its sending side, and would still read. */
  "half-close": "its own side ends",
} as const;

/** When a client disconnects: what it requested, and whether it had received part of the answer. */
const PHASES = {
  "before the head": { ask: "stall", stream: true, got: false },
  "before the head, whole": { ask: "stall", stream: false, got: false },
  "before the first event": { ask: "stall-after:0", stream: true, got: false },
  "between two events": { ask: "stall-after:3", stream: true, got: true },
  "while events come": { ask: "slow:50ms", stream: true, got: true },
} as const;

/** One combination under test. */
interface Disconnect {
  client: Protocol;
  upstream: Protocol;
  /** The transport to the upstream; absent: as configured by default. */
  transport?: string;
  phase: keyof typeof PHASES;
  manner: keyof typeof MANNERS;
  /** Number of times. */
  times: number;
}

/** Times from a client's disconnect to the end of its upstream request, in milliseconds, in ascending order. */
async function timesOf({ client, upstream, transport, phase, manner, times }: Disconnect): Promise<number[]> {
  const { ask, stream, got } = PHASES[phase];
  await using server = startServer();
  await using gateway = startGateway(oneModel(upstream, server.url, transport === undefined ? {} : { transport }));
  const taken: number[] = [];
  for (let time = 0; time < times; time++) {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port: gateway.port });
    await connection.write(new TextEncoder().encode(gateway.raw(client, prompt(client, { stream }, ask))));
    await until("under way", () => server.busy === 1);
    // The head of the upstream's answer needs a moment to arrive.
    if (phase === "before the first event") await new Promise((resolve) => setTimeout(resolve, 5));
    const buffer = new Uint8Array(65_536);
    if (got) { for (let size = 0; size < 300;) size += await connection.read(buffer) ?? 300; }
    if (manner === "reset" && got) await new Promise((resolve) => setTimeout(resolve, 15));
    const disconnected = performance.now();
    if (manner === "half-close") await connection.closeWrite();
    else connection.close();
    await until("over", () => server.busy === 0);
    taken.push(performance.now() - disconnected);
    if (manner === "half-close") connection.close();
  }
  await gateway.gateway.backgroundTasks.done();
  assertEquals(gateway.logs.filter(({ level }) => level === "error"), []);
  return taken.sort((a, b) => a - b);
}

/** Longest time from a disconnect to the end of the upstream request, in milliseconds. */
const SOON_MS = 2_000;

const PAIRS: readonly [client: Protocol, upstream: Protocol][] = [
  ["chat", "chat"],
  ["responses", "responses"],
  ["messages", "messages"],
  ["chat", "messages"],
  ["messages", "responses"],
  ["responses", "chat"],
  ["gemini", "gemini"],
  ["chat", "gemini"],
  ["gemini", "messages"],
  ["gemini", "chat"],
];

const FEW = skipInQuick("Disconnects in each phase and manner for two of three pairs of protocols");

for (const transport of ["http1", "fetch"]) {
  for (const [at, phase] of (Object.keys(PHASES) as Disconnect["phase"][]).entries()) {
    Deno.test(`${transport}: a disconnect ${phase} cancels the upstream at once`, async () => {
      for (const [place, manner] of (Object.keys(MANNERS) as Disconnect["manner"][]).entries()) {
        // The end of a client's connection does not concern the transport.
        if (transport === "fetch" && manner !== "close") continue;
        for (const [index, [client, upstream]] of PAIRS.entries()) {
          if (FEW && (index + at + place) % 3 > 0) continue;
          const what = { client, upstream, transport, phase, manner, times: rounds(3) };
          const [first = Infinity, median = first] = await timesOf(what);
          assert(median <= SOON_MS, `${client}, ${upstream}, ${manner}: ${first} and ${median} ms`);
        }
      }
    });
  }
}
