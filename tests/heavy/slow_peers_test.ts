/**
 * Slow readers and writers beside normal traffic: others hardly notice, the slow ones are cut and billed as they
 * should.
 */
import { assert, assertEquals, assertGreater, assertLess } from "@std/assert";
import { type Peer, startPeer } from "../../bench/suite/peer.ts";
import type { JobResult, LoadJob } from "../../bench/suite/load.ts";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import { auditLedger } from "../../lib/billing/reports/audit.ts";
import { inFolder, run, type Running, start } from "../support/program.ts";
import { readEntries } from "../e2e/nodes/cluster.ts";
import { type Figure, publish } from "./figures.ts";
import type { PeerCommand, Read, Seen, Written } from "./slow/peers.ts";
import { weigh } from "./streams/weigh.ts";
import { until } from "../support/soon.ts";
import { plainModel } from "../support/plain_model.ts";

const READERS = 300;
const WRITERS = 300;
const ROUNDS = Number(Deno.env.get("HEAVY_ROUNDS") ?? 4);
/** Normal traffic: requests per second, and for how long it is measured each time, in milliseconds. */
const PER_SECOND = 100;
const MEASURE_MS = 10_000;
/**
 * The limit for slow peers, in milliseconds: longer than the measurement beside them. A reader of 1 KiB per second
 * makes room only every 64 s, because the system announces no less: it is noticed before that.
 */
const PATIENCE_MS = 26_000;
/** Time for the buffers between to fill, and for the previous round to end, in milliseconds. */
const SETTLE_MS = 3_000;
/** More than the limit and the way back take: the machine is busy here. */
const CUT_MS = 2 * PATIENCE_MS + 5_000;
/** Readers that continue after they were cut, to see the error they got. */
const DRAINED = 35;
/** Growth of memory for each slow peer, at most, in bytes. */
const PER_PEER_BYTES = 1024 * 1024;
/** Many concurrent readers keep two shared cores busy for seconds. */
const CONNECT_MS = 30_000;
/** One of this many writers may lose its answer, because its next byte reset the connection. */
const RESET_OF = 50;
const COMPLETION = 3_000_000n;

const LIMITS = { requests_per_minute: 1_000_000, tokens_per_minute: 1_000_000_000, concurrency: 20_000 };

function configFor(port: number): string {
  const model = (name: string) =>
    plainModel({
      id: `acme/${name}`,
      context_length: 10_000_000,
      pricing: { prompt: "0.000001", completion: "0.000003" },
      targets: [{ upstream: name, model: "m" }],
    });
  const upstream = (name: string) => ({
    vendor: "openai-compatible",
    base_url: `http://127.0.0.1:${port}/${name}/v1`,
    timeouts: { connect_ms: CONNECT_MS },
  });
  return JSON.stringify({
    upstreams: { quick: upstream("quick"), words: upstream("words"), padded: upstream("padded") },
    models: [model("quick"), model("words"), model("padded")],
    groups: { default: { limits: LIMITS, budget: { usd: "900000", period: "month" } } },
    resource_limits: { answer_unread_ms: PATIENCE_MS, body_grace_ms: PATIENCE_MS },
    log: { requests: "errors" },
  });
}

async function tell(peers: Peer, command: PeerCommand): Promise<Seen> {
  const seen = JSON.parse(await peers.ask(JSON.stringify(command)));
  assertEquals(seen.failed, undefined);
  return seen;
}

async function load(peer: Peer, job: LoadJob): Promise<JobResult> {
  const done: JobResult = JSON.parse(await peer.ask(JSON.stringify(job)));
  assertEquals(done.failed, undefined);
  return done;
}

/** Normal traffic for a while. Gives the time of each request, sorted, in milliseconds. */
async function normal(peer: Peer): Promise<number[]> {
  const done = await load(peer, { kind: "rate", ms: MEASURE_MS, perSecond: PER_SECOND });
  assertEquals(done.requests, MEASURE_MS / 1000 * PER_SECOND);
  return done.totalUs.map((us) => us / 1000).sort((a, b) => a - b);
}

function at(sorted: readonly number[], share: number): number {
  return Math.round((sorted[Math.floor((sorted.length - 1) * share)] ?? 0) * 100) / 100;
}

function median(numbers: readonly number[]): number {
  return at(numbers.toSorted((a, b) => a - b), 0.5);
}

function assertRefused({ native, text, ms }: Written): void {
  assert(text.startsWith("HTTP/1.1 408 "), text.slice(0, 600));
  const body = JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4));
  assert(body.error.message.includes("arrives too slowly"), text);
  assertEquals(body.type, native ? "error" : undefined);
  assert(ms > PATIENCE_MS - 500 && ms < PATIENCE_MS + 10_000, `${ms} ms`);
}

/** The reader got the error of its protocol, and no mark of a complete answer. */
function assertCut({ native, end }: Read): void {
  assert(end.includes("read nothing"), end);
  assert(native ? end.includes("event: error\n") : end.includes('data: {"error"'), end);
  assert(!end.includes("[DONE]") && !end.includes("message_stop"), end);
}

interface Sample {
  pssBytes: number;
  growth: number;
}

async function growth(gateway: Running, before: number): Promise<Sample> {
  const { pssBytes } = await weigh(gateway.pid);
  return { pssBytes, growth: pssBytes - before };
}

Deno.test({
  name:
    `${READERS} slow readers and ${WRITERS} slow writers: the p99 of others at most doubles, all are cut and billed correctly`,
  ignore: Deno.build.os !== "linux",
  fn: () =>
    inFolder(async (folder) => {
      await using open = new AsyncDisposableStack();
      const [upstream, peers, clients] = ["./slow/upstream.ts", "./slow/peers.ts", "../../bench/suite/load.ts"].map(
        (file) => startPeer(new URL(file, import.meta.url).href),
      ) as [Peer, Peer, Peer];
      for (const peer of [upstream, peers, clients]) open.defer(() => peer.end());
      await Deno.writeTextFile(`${folder}/sluice.jsonc`, configFor(Number(await upstream.ask(""))));
      const key = /sk-sluice-\S+/.exec((await run(["keys", "add", "slow"], { folder })).out)?.[0] ?? "";
      const gateway = await start(["serve"], { folder });
      let isOver = false;
      open.defer(async () => {
        if (isOver) return;
        gateway.kill("SIGKILL");
        const { err } = await gateway.ended;
        // Log lines that slow writers are expected to cause are left out.
        const lines = err.split("\n").filter((line) => !line.includes('"kind":"too_slow"'));
        await Deno.stderr.write(new TextEncoder().encode(`${lines.slice(-20).join("\n")}\n`));
      });
      const port = Number(new URL(gateway.origin).port);
      await load(clients, {
        kind: "open",
        port,
        path: "/v1/chat/completions",
        headers: { authorization: `Bearer ${key}` },
        ask: { protocol: "chat", size: "1k", model: "acme/quick", stream: false },
        connections: 20,
      });
      await normal(clients);
      const before = (await weigh(gateway.pid)).pssBytes;

      const rounds: { alone: number[]; beside: number[] }[] = [];
      const grown: number[] = [];
      const ids: string[] = [];
      const read: Read[] = [];
      const writers: Written[] = [];
      const opening: number[][] = [];
      for (let round = 0; round < ROUNDS; round++) {
        await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
        const alone = await normal(clients);
        // While they connect, their buffers fill: the same work as a quick reader causes.
        const coming = normal(clients);
        // A failure is reported where it is awaited.
        coming.catch(() => {});
        const opened = await tell(peers, {
          kind: "open",
          port,
          key,
          models: { native: "acme/words", chat: "acme/padded" },
          readers: READERS,
          writers: WRITERS,
        });
        assertEquals(opened.heads, READERS);
        opening.push(await coming);
        await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
        const sampling = growth(gateway, before);
        const beside = await normal(clients);
        grown.push((await sampling).growth, (await growth(gateway, before)).growth);
        ids.push(...opened.ids);
        rounds.push({ alone, beside });
        writers.push(...(await tell(peers, { kind: "refused" })).writers);
        await until("all slow readers are cut", () => entered(folder, opened.ids), CUT_MS);
        read.push(...(await tell(peers, { kind: "drain", readers: DRAINED })).read);
      }
      gateway.kill("SIGTERM");
      isOver = true;
      const { code, err } = await gateway.ended;
      assertEquals([code, err.includes('"level":"error"')], [0, false], err.slice(-2_000));

      assertEquals(writers.length, ROUNDS * WRITERS);
      const heard = writers.filter(({ text }) => text !== "");
      assertLess(writers.length - heard.length, writers.length / RESET_OF);
      for (const each of heard) assertRefused(each);
      for (const each of read) assertCut(each);
      const store = openSqliteStore(`${folder}/data/sluice.db`);
      const entries = new Map((await readEntries(store.ledger)).map((entry) => [entry.id, entry]));
      const holds = await store.ledger.holds();
      const { ok, differences } = await auditLedger(store.ledger);
      await store.close();
      assertEquals([ok, differences, holds], [true, [], []]);
      for (const id of ids) {
        const entry = entries.get(id);
        assertEquals([entry?.ending, entry?.status, entry?.source], ["client_disconnected", 200, "counted"], id);
        assertGreater(entry?.cost ?? 0n, 0n);
      }
      // The cost is exactly that of the sent part.
      for (const { id, words } of read) {
        const entry = entries.get(id);
        assertEquals(entry?.tokens.completion, words, id);
        assertEquals(entry?.cost, BigInt(words) * COMPLETION + BigInt(entry?.tokens.prompt ?? 0) * 1_000_000n);
      }
      // Requests that were never complete cost nothing.
      for (const { cost, status } of entries.values()) assert(status !== 408 || cost === 0n);

      const p99 = {
        alone: rounds.map(({ alone }) => at(alone, 0.99)),
        beside: rounds.map(({ beside }) => at(beside, 0.99)),
      };
      const ratio = Math.round(median(p99.beside) / median(p99.alone) * 100) / 100;
      const figures: Record<string, Figure> = {
        readers: READERS,
        writers: WRITERS,
        rounds: ROUNDS,
        per_second: PER_SECOND,
        p99_ms: { ...p99, alone_median: median(p99.alone), beside_median: median(p99.beside), ratio },
        p50_ms: {
          alone: median(rounds.map(({ alone }) => at(alone, 0.5))),
          beside: median(rounds.map(({ beside }) => at(beside, 0.5))),
        },
        p99_while_they_come_ms: median(opening.map((times) => at(times, 0.99))),
        growth_bytes_per_peer: Math.round(Math.max(...grown) / (READERS + WRITERS)),
        readers_cut: ids.length,
        readers_billed_exactly: read.length,
        writers_refused: heard.length,
        writers_reset: writers.length - heard.length,
        errors_of_others: 0,
        // Load of the machine: with more work than cores, times describe it rather than the gateway.
        load_average: Deno.loadavg()[0] ?? 0,
      };
      await publish("slow_peers", figures);
      assertLess(Math.max(...grown) / (READERS + WRITERS), PER_PEER_BYTES);
      assertLess(ratio, 2);
    }),
});

/** True if all of these are in the ledger. */
async function entered(folder: string, ids: readonly string[]): Promise<boolean> {
  const store = openSqliteStore(`${folder}/data/sluice.db`);
  try {
    for (const id of ids) if (await store.ledger.find(id) === undefined) return false;
    return true;
  } finally {
    await store.close();
  }
}
