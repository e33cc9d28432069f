// deno-lint-ignore-file no-console
/**
 * Measures an upstream call over each transport, and over plain sockets as a lower bound. Each transport runs in its
 * own process against one upstream, in interleaved rounds, measured in CPU time: `deno run -A bench/transports.ts
 * [rounds]`
 */
import { BURST_EVENTS, PACED_EVENTS } from "./suite/answers.ts";
import { type Peer, startPeer } from "./suite/peer.ts";
import { median } from "./suite/rounds.ts";
import { short, table } from "./suite/tables.ts";
import type { Cost, Job } from "./transports_client.ts";

const NAMES = ["fetch", "http1", "sockets"] as const;
type Name = (typeof NAMES)[number];

/** One column: the job of a round, and which figure of its cost is shown. */
interface Column {
  title: string;
  job: Job;
  show: (cost: Cost) => number;
  /** Each round in a new process. */
  fresh?: boolean;
}

const perCall = (cost: Cost, calls: number) => cost.cpuUs / calls;
const JSON1: Job = { play: "json", size: "1k", calls: 4_000, atOnce: 32 };
const JSON60: Job = { play: "json60", size: "60k", calls: 1_500, atOnce: 32 };
const BURST: Job = { play: "burst", size: "1k", calls: 400, atOnce: 16 };
const PACED: Job = { play: "paced", size: "1k", calls: 100, atOnce: 100 };
const CALM: Job = { play: "json", size: "1k", calls: 100, atOnce: 1, pauseMs: 10 };
const SLOW: Job = { play: "slow", size: "1k", calls: 1_000, atOnce: 100 };

const COLUMNS: readonly Column[] = [
  { title: "1 KB, CPU µs", job: JSON1, show: (cost) => perCall(cost, JSON1.calls) },
  { title: "60 KB, CPU µs", job: JSON60, show: (cost) => perCall(cost, JSON60.calls) },
  { title: "burst, CPU µs/event", job: BURST, show: (cost) => perCall(cost, BURST.calls * BURST_EVENTS) },
  { title: "paced, CPU µs/event", job: PACED, show: (cost) => perCall(cost, PACED.calls * PACED_EVENTS) },
  { title: "calm 1 KB, CPU µs", job: CALM, show: (cost) => perCall(cost, CALM.calls) },
  { title: "calm 1 KB, p50 µs", job: CALM, show: (cost) => cost.p50Us },
  { title: "KB per open stream", job: SLOW, show: (cost) => cost.rssBytes / SLOW.calls / 1024, fresh: true },
];

/** Runs one column on every transport, round by round. Returns the medians. */
async function measure(column: Column, { port, rounds }: { port: number; rounds: number }): Promise<Map<Name, number>> {
  const found = new Map<Name, number[]>(NAMES.map((name) => [name, []]));
  const peers = new Map<Name, Peer>();
  for (let round = 0; round <= rounds; round++) {
    for (const name of NAMES) {
      const peer = peers.get(name) ?? startPeer("../transports_client.ts");
      peers.set(name, peer);
      const cost: Cost = JSON.parse(await peer.ask(JSON.stringify({ ...column.job, name, port })));
      // The first round warms up, except for fresh connections.
      if (round > 0 || column.fresh === true) found.get(name)?.push(column.show(cost));
      if (column.fresh !== true) continue;
      await peer.end();
      peers.delete(name);
    }
  }
  for (const peer of peers.values()) await peer.end();
  return new Map([...found].map(([name, values]) => [name, median(values)]));
}

const rounds = Number(Deno.args[0] ?? 5);
const upstream = startPeer("./upstream.ts");
const port = Number(await upstream.ask(""));
const results: Map<Name, number>[] = [];
for (const column of COLUMNS) results.push(await measure(column, { port, rounds }));
await upstream.end();
console.log(table(
  ["transport", ...COLUMNS.map(({ title }) => title)],
  NAMES.map((name) => [name, ...results.map((medians) => short(medians.get(name) ?? NaN))]),
));
Deno.exit(0);
