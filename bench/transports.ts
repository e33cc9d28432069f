// deno-lint-ignore-file no-console
/**
 * Measures an upstream call over each transport, and over bare sockets as the floor. Each transport runs in its own
 * process against one upstream, in interleaved rounds, measured in CPU time: `deno run -A bench/transports.ts [rounds]`
 */
import { EVENTS_BURST, EVENTS_PACED } from "./transports_answers.ts";
import type { Cost, Job } from "./transports_client.ts";

const NAMES = ["fetch", "node", "http1", "raw"] as const;
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
const JSON1: Job = { path: "/json1", body: "small", calls: 4_000, atOnce: 32 };
const JSON60: Job = { path: "/json60", body: "large", calls: 1_500, atOnce: 32 };
const BURST: Job = { path: "/burst", body: "small", calls: 400, atOnce: 16 };
const PACED: Job = { path: "/paced", body: "small", calls: 100, atOnce: 100 };
const CALM: Job = { path: "/json1", body: "small", calls: 100, atOnce: 1, pauseMs: 10 };
const SLOW: Job = { path: "/slow", body: "small", calls: 1_000, atOnce: 100, holds: true };

const COLUMNS: readonly Column[] = [
  { title: "1 KB, CPU µs", job: JSON1, show: (cost) => perCall(cost, JSON1.calls) },
  { title: "60 KB, CPU µs", job: JSON60, show: (cost) => perCall(cost, JSON60.calls) },
  { title: "burst, CPU µs/event", job: BURST, show: (cost) => perCall(cost, BURST.calls * EVENTS_BURST) },
  { title: "paced, CPU µs/event", job: PACED, show: (cost) => perCall(cost, PACED.calls * EVENTS_PACED) },
  { title: "calm 1 KB, CPU µs", job: CALM, show: (cost) => perCall(cost, CALM.calls) },
  { title: "calm 1 KB, p50 µs", job: CALM, show: (cost) => cost.p50Us },
  { title: "KB per open stream", job: SLOW, show: (cost) => cost.rssBytes / SLOW.calls / 1024, fresh: true },
];

/** A process that answers lines with lines. */
interface Peer {
  ask(line: string): Promise<string>;
  end(): void;
}

function startPeer(file: string, args: readonly string[]): Peer {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-check", "-A", new URL(file, import.meta.url).pathname, ...args],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  return {
    async ask(line) {
      if (line !== "") await writer.write(new TextEncoder().encode(`${line}\n`));
      while (!text.includes("\n")) {
        const { value } = await reader.read();
        if (value === undefined) throw new Error(`${file} has ended`);
        text += value;
      }
      const end = text.indexOf("\n");
      const answer = text.slice(0, end);
      text = text.slice(end + 1);
      return answer;
    },
    end: () => child.kill(),
  };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
}

/** Runs one column on every transport, round by round. Returns the medians. */
async function measure(column: Column, { url, rounds }: { url: string; rounds: number }): Promise<Map<Name, number>> {
  const found = new Map<Name, number[]>(NAMES.map((name) => [name, []]));
  const peers = new Map<Name, Peer>();
  for (let round = 0; round <= rounds; round++) {
    for (const name of NAMES) {
      const peer = peers.get(name) ?? startPeer("./transports_client.ts", [name, url]);
      peers.set(name, peer);
      const cost: Cost = JSON.parse(await peer.ask(JSON.stringify(column.job)));
      // The first round warms up, except for fresh connections.
      if (round > 0 || column.fresh === true) found.get(name)?.push(column.show(cost));
      if (column.fresh !== true) continue;
      peer.end();
      peers.delete(name);
    }
  }
  for (const peer of peers.values()) peer.end();
  return new Map([...found].map(([name, values]) => [name, median(values)]));
}

const rounds = Number(Deno.args[0] ?? 5);
const upstream = startPeer("./transports_upstream.ts", []);
const url = await upstream.ask("");
const results = new Map<string, Map<Name, number>>();
for (const column of COLUMNS) results.set(column.title, await measure(column, { url, rounds }));
upstream.end();

console.log(`| transport | ${COLUMNS.map(({ title }) => title).join(" | ")} |`);
console.log(`|---|${"---|".repeat(COLUMNS.length)}`);
for (const name of NAMES) {
  const cells = COLUMNS.map(({ title }) => {
    const value = results.get(title)?.get(name) ?? NaN;
    return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
  });
  console.log(`| ${name} | ${cells.join(" | ")} |`);
}
Deno.exit(0);
