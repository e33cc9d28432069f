/** Holds as many streams as a process has descriptors for, for a minute: no event is lost, and the bill is correct. */
import { assert, assertEquals, assertLess } from "@std/assert";
import { type Peer, startPeer } from "../../bench/suite/peer.ts";
import { V8_FLAGS } from "../../bench/suite/v8_flags.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import { Secret } from "../../lib/secret.ts";
import type { StoreAddress } from "../../lib/config/address.ts";
import { openStore } from "../../lib/store/open.ts";
import { auditLedger } from "../../lib/billing/reports/audit.ts";
import { inFolder, run, type Running, start } from "../support/program.ts";
import { HAS_POSTGRES, HAS_REDIS, startPostgres, startRedis } from "../support/databases.ts";
import { readEntries } from "../e2e/nodes/cluster.ts";
import { type Figure, publish } from "./figures.ts";
import type { ClientCommand, Seen } from "./streams/clients.ts";
import type { StreamCounts } from "./streams/upstream.ts";
import { cpuSeconds, descriptorLimit, weigh, type Weight } from "./streams/weigh.ts";
import { availableIn } from "../support/available.ts";

/** Streams of one process, and of two together. */
const ALONE = Number(Deno.env.get("HEAVY_STREAMS") ?? 9_500);
const TOGETHER = Number(Deno.env.get("HEAVY_STREAMS") ?? 10_000);
/** Time that all of them are open, in milliseconds; a second round shows whether memory is reused. */
const HOLD_MS = 60_000;
const AGAIN_MS = 12_000;
/** Streams that one job opens. */
const OPENED_AT_ONCE = 1_000;
/** Streams before all others, so that nothing is loaded or compiled among them. */
const WARM = 100;
/** Descriptors of a process besides those of its streams, of which each has two. */
const OTHER_DESCRIPTORS = 400;
/** Largest growth of memory per stream, in bytes: 90 KiB of it are the runtime's for two connections. */
const PER_STREAM_BYTES = 320 * 1024;
/** Descriptors that may remain beyond those before the streams. */
const DESCRIPTORS_LEFT = 20;
/** Time limit for Redis, in milliseconds: it has to share two cores with everything else here. */
const REDIS_MS = 5_000;
/** Time for descriptors to be closed, in milliseconds. */
const BACK_MS = 90_000;

const PRICES = { prompt: 1_000_000n, completion: 3_000_000n };
const PROMPT_TOKENS = 200;
const MODEL = "acme/counter";

/** Configuration of all nodes. */
function configFor(port: number, more: JsonObject): JsonObject {
  const limits = { requests_per_minute: 1_000_000, tokens_per_minute: 1_000_000_000, concurrency: 20_000 };
  const budget = { usd: "100000", period: "month" };
  return {
    upstreams: { counter: { vendor: "anthropic", base_url: `http://127.0.0.1:${port}`, api_key: { env: "KEY_UP" } } },
    models: [{
      id: MODEL,
      created: 1,
      context_length: 100_000,
      pricing: { prompt: "0.000001", completion: "0.000003" },
      targets: [{ upstream: "counter", model: "m" }],
    }],
    groups: { default: { limits, budget, key_limits: limits, key_budget: budget } },
    log: { requests: "errors" },
    ...more,
  };
}

async function tell(clients: Peer, command: ClientCommand): Promise<Seen> {
  // The end of thousands of streams may take longer than a line usually may.
  return JSON.parse(await clients.ask(JSON.stringify(command)));
}

interface Parts {
  store: StoreAddress;
  streams: number;
  start: (port: number) => Promise<{ nodes: Running[]; key: string }>;
}

/** All of the streams concurrently, from the first to the last. */
interface Wave {
  openingMs: number;
  heldMs: number;
  /** Processor time of all nodes, in cores. */
  cpu: number;
  delays: Seen["delay"][];
  /** Of all nodes together, one after the other; then when all streams are over. */
  weights: Weight[];
  after: Weight;
}

/** Everything that runs besides the streams while they are held. */
interface Scene {
  clients: Peer;
  nodes: readonly Running[];
  /** Sends a command to the upstream. */
  status(line: string): Promise<StreamCounts>;
  opening: Omit<Extract<ClientCommand, { kind: "open" }>, "streams">;
}

/** Opens streams, holds them, and ends them. Asserts that all were correct. */
async function wave(scene: Scene, { streams, holdMs, before }: { streams: number; holdMs: number; before: Weight }) {
  const { clients, nodes, status, opening } = scene;
  const begun = await status("status");
  let openingMs = 0;
  // In steps: an answer to a line is not waited for without end.
  for (let at = 0; at < streams; at += OPENED_AT_ONCE) {
    const opened = await tell(clients, { ...opening, streams: Math.min(OPENED_AT_ONCE, streams - at) });
    assertEquals([opened.failed, opened.errors], [0, []], "while they were opened");
    openingMs += opened.ms;
  }
  const [cpuBefore, heldAt] = [await cpuOf(nodes), performance.now()];
  const wave: Wave = { openingMs, heldMs: 0, cpu: 0, delays: [], weights: [], after: before };
  while (performance.now() - heldAt < holdMs) {
    await new Promise((resolve) => setTimeout(resolve, holdMs / 6));
    const { failed, errors, ended, delay } = await tell(clients, { kind: "tell" });
    assertEquals([failed, errors, ended], [0, [], begun.ended], "while they were held");
    wave.delays.push(delay);
    wave.weights.push(await weighAll(nodes));
  }
  wave.heldMs = performance.now() - heldAt;
  wave.cpu = (await cpuOf(nodes) - cpuBefore) / wave.heldMs * 1000;
  const counts = await status("status");
  assertEquals([counts.open, counts.broken], [streams, 0]);

  await status("end");
  const seen = await tell(clients, { kind: "finish" });
  const last = await status("status");
  // Every number arrived once and in order, and every stream has its end.
  assertEquals([seen.errors, seen.failed, seen.events], [[], 0, last.events]);
  assertEquals([last.open, last.broken, last.ended, seen.ended], [0, 0, begun.ended + streams, last.ended]);
  await tell(clients, { kind: "close" });
  const backAt = performance.now();
  do {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    wave.after = await weighAll(nodes);
  } while (performance.now() - backAt < BACK_MS && wave.after.descriptors > before.descriptors + DESCRIPTORS_LEFT);
  assertLess(wave.after.descriptors, before.descriptors + DESCRIPTORS_LEFT + 1);
  return { wave, seen };
}

/** Runs the waves, and asserts that the ledger is correct afterwards. Returns the figures. */
async function hold({ store: address, streams, start }: Parts): Promise<Record<string, Figure>> {
  await using open = new AsyncDisposableStack();
  const upstream = startPeer(new URL("./streams/upstream.ts", import.meta.url).href);
  open.defer(() => upstream.end());
  const clients = startPeer(new URL("./streams/clients.ts", import.meta.url).href);
  open.defer(() => clients.end());
  const port = Number(await upstream.ask(""));
  const { nodes, key } = await start(port);
  open.defer(() => endAll(nodes));
  const scene: Scene = {
    clients,
    nodes,
    status: async (line) => JSON.parse(await upstream.ask(line)),
    opening: { kind: "open", ports: nodes.map(({ origin }) => Number(new URL(origin).port)), key, model: MODEL },
  };
  const none = { pssBytes: 0, rssBytes: 0, descriptors: 1_000 };
  await wave(scene, { streams: WARM, holdMs: 1_000, before: none });
  const before = await weighAll(nodes);
  const { wave: first, seen: { events } } = await wave(scene, { streams, holdMs: HOLD_MS, before });
  const { wave: again, seen } = await wave(scene, { streams, holdMs: AGAIN_MS, before });
  const all = WARM + 2 * streams;

  for (const node of nodes) {
    node.kill("SIGTERM");
    const { code, err } = await node.ended;
    assertEquals([code, err.includes('"level":"error"')], [0, false], err.slice(0, 4_000));
  }
  await using store = await closing(address);
  const entries = await readEntries(store.ledger);
  const bill = entries.reduce((sum, { cost }) => sum + cost, 0n);
  const due = BigInt(all * PROMPT_TOKENS) * PRICES.prompt + BigInt(seen.completions) * PRICES.completion;
  assertEquals([entries.length, new Set(entries.map(({ id }) => id)).size, seen.ended], [all, all, all]);
  assertEquals([bill, String(bill)], [due, seen.paid]);
  assertEquals(entries.filter(({ ending }) => ending !== "end"), []);
  const left = await availableIn(store.ledger, { scope: "group", id: "default", budget: 10n ** 17n, since: 0 });
  assertEquals([await store.ledger.holds(), left], [[], 10n ** 17n - bill]);
  const { ok, differences } = await auditLedger(store.ledger);
  assertEquals([ok, differences], [true, []]);

  const peak = ({ weights }: Wave) => Math.max(...weights.map(({ pssBytes }) => pssBytes));
  const figures = {
    streams,
    processes: nodes.length,
    held_seconds: Math.round(first.heldMs / 1000),
    events,
    events_lost: 0,
    errors: seen.failed,
    entries: entries.length,
    opening_ms: first.openingMs,
    delay_ms: {
      p50: median(first.delays.map(({ p50 }) => p50)),
      p99: median(first.delays.map(({ p99 }) => p99)),
      max: Math.max(...first.delays.map(({ max }) => max)),
    },
    cpu_cores: Math.round(first.cpu * 100) / 100,
    // When all are open, and the most of the whole time, garbage included.
    per_stream_bytes: {
      opened: Math.round(((first.weights[0]?.pssBytes ?? 0) - before.pssBytes) / streams),
      most: Math.round((peak(first) - before.pssBytes) / streams),
    },
    pss_bytes: {
      before: before.pssBytes,
      most: peak(first),
      after: first.after.pssBytes,
      again_most: peak(again),
      again_after: again.after.pssBytes,
    },
    descriptors: {
      before: before.descriptors,
      open: first.weights.at(-1)?.descriptors ?? 0,
      after: again.after.descriptors,
    },
  };
  await Deno.stdout.write(new TextEncoder().encode(`${JSON.stringify(figures)}\n`));
  assertLess(figures.per_stream_bytes.most, PER_STREAM_BYTES);
  // The engine releases memory when it needs room, not when idle: the next streams reuse it.
  assertLess(peak(again), 1.5 * peak(first));
  return figures;
}

async function endAll(nodes: readonly Running[]): Promise<void> {
  for (const node of nodes) {
    try {
      node.kill("SIGKILL");
    } catch {
      // It has ended as it should.
    }
    await node.ended;
  }
}

async function weighAll(nodes: readonly Running[]): Promise<Weight> {
  const sum = { pssBytes: 0, rssBytes: 0, descriptors: 0 };
  for (const { pid } of nodes) {
    const weight = await weigh(pid);
    sum.pssBytes += weight.pssBytes;
    sum.rssBytes += weight.rssBytes;
    sum.descriptors += weight.descriptors;
  }
  return sum;
}

async function closing(address: StoreAddress) {
  const store = await openStore(address);
  return { ledger: store.ledger, [Symbol.asyncDispose]: async () => void await store.close() };
}

async function cpuOf(nodes: readonly Running[]): Promise<number> {
  const times = await Promise.all(nodes.map(({ pid }) => cpuSeconds(pid)));
  return times.reduce((sum, time) => sum + time, 0);
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0;
}

async function addKey(folder: string, env: Record<string, string> = {}): Promise<string> {
  const { out, err } = await run(["keys", "add", "clients"], { folder, env });
  const key = /sk-sluice-\S+/.exec(out)?.[0];
  assert(key !== undefined, err);
  return key;
}

/** The engine runs as in the program that is released. */
const ENV = { KEY_UP: "key-of-the-upstream", DENO_V8_FLAGS: V8_FLAGS };
Deno.test({
  name:
    `${ALONE} streams of one process for a minute: no error, no lost event, one entry each (needs 20,000 descriptors)`,
  ignore: Deno.build.os !== "linux" || descriptorLimit() < 2 * ALONE + OTHER_DESCRIPTORS,
  fn: () =>
    inFolder(async (folder) => {
      const figures = await hold({
        store: { kind: "sqlite", path: `${folder}/data/sluice.db` },
        streams: ALONE,
        async start(port) {
          await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(configFor(port, {})));
          const key = await addKey(folder, ENV);
          return { key, nodes: [await start(["serve"], { folder, env: ENV })] };
        },
      });
      await publish("streams", figures);
    }),
});

Deno.test({
  name: `${TOGETHER} streams of two processes on one Postgres and one Redis: the same`,
  ignore: Deno.build.os !== "linux" || !(HAS_POSTGRES && HAS_REDIS) ||
    descriptorLimit() < TOGETHER + OTHER_DESCRIPTORS,
  fn: () =>
    inFolder(async (folder) => {
      await using postgres = await startPostgres();
      await using redis = await startRedis();
      const env = { ...ENV, SLUICE_STORE: postgres.url, SLUICE_LIMITS_STORE: redis.url };
      const figures = await hold({
        store: { kind: "postgres", url: new Secret(postgres.url) },
        streams: TOGETHER,
        async start(port) {
          const nodes: Running[] = [];
          let key = "";
          for (const name of ["one", "two"]) {
            const place = { folder: `${folder}/${name}`, env };
            await Deno.mkdir(place.folder);
            await Deno.writeTextFile(
              `${place.folder}/sluice.jsonc`,
              JSON.stringify(configFor(port, { nodes: { limits_timeout_ms: REDIS_MS } })),
            );
            if (key === "") key = await addKey(place.folder, env);
            nodes.push(await start(["serve"], place));
          }
          return { key, nodes };
        },
      });
      await publish("streams_together", figures);
    }),
});
