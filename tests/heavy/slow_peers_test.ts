/**
 * Slow readers and writers together with normal traffic: others are hardly delayed, and slow ones are cut off and
 * billed correctly.
 */
import { assert, assertEquals, assertGreater, assertLess } from "@std/assert";
import { type Peer, startPeer } from "../../bench/suite/peer.ts";
import type { JobResult, LoadJob } from "../../bench/suite/load.ts";
import { parseUsd } from "../../lib/billing/money.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import { inFolder, type Running, start } from "../support/program.ts";
import { type Figure, publish } from "./figures.ts";
import { LONGEST_MS, type PeerCommand, type Read, type Seen, type Written } from "./slow/peers.ts";
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
/** More than the limit and the way back take on a busy machine. */
const CUT_MS = 10 * PATIENCE_MS;
/** Readers that continue after they were cut, to see the error they got. */
const DRAINED = 35;
/** Growth of memory for each slow peer, at most, in bytes. */
const PER_PEER_BYTES = 1024 * 1024;
/** Many concurrent readers, and other processes, keep two shared cores busy for long. */
const CONNECT_MS = 120_000;
/** One of this many writers may lose its answer, because its next byte reset the connection. */
const RESET_OF = 50;
const COMPLETION = 3_000_000n;

const ENV = { ADMIN_KEY: "admin-key-of-slow-peers", CLIENT_KEY: "client-key-of-slow-peers" };

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
    resource_limits: { answer_unread_ms: PATIENCE_MS, body_grace_ms: PATIENCE_MS, body_gap_ms: PATIENCE_MS },
    // A disk that stalls for seconds would make the gateway refuse requests.
    store: "memory:",
    keys: [{ name: "slow", key: { env: "CLIENT_KEY" } }],
    admin: { key: { env: "ADMIN_KEY" } },
    log: { requests: "errors" },
  });
}

async function tell(peers: Peer, command: PeerCommand): Promise<Seen> {
  const seen = JSON.parse(await peers.ask(JSON.stringify(command), 2 * LONGEST_MS));
  assertEquals(seen.failed, undefined);
  return seen;
}

async function load(peer: Peer, job: LoadJob): Promise<JobResult> {
  const done: JobResult = JSON.parse(await peer.ask(JSON.stringify(job)));
  assertEquals(done.failed, undefined, JSON.stringify(done).slice(0, 500));
  return done;
}

/** Sends normal traffic for a while. Returns the durations of the requests, sorted, in milliseconds. */
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
  assert(ms > PATIENCE_MS - 500 && ms < CUT_MS, `${ms} ms`);
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
      // Beside other work the times of requests describe the machine.
      const isQuiet = (Deno.loadavg()[0] ?? 0) < navigator.hardwareConcurrency / 2;
      await using open = new AsyncDisposableStack();
      const [upstream, peers, clients] = ["./slow/upstream.ts", "./slow/peers.ts", "../../bench/suite/load.ts"].map(
        (file) => startPeer(new URL(file, import.meta.url).href),
      ) as [Peer, Peer, Peer];
      for (const peer of [upstream, peers, clients]) open.defer(() => peer.end());
      await Deno.writeTextFile(`${folder}/sluice.jsonc`, configFor(Number(await upstream.ask(""))));
      const key = ENV.CLIENT_KEY;
      const gateway = await start(["serve"], { folder, env: ENV });
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
      const entries = new Map<string, JsonObject>();
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
        rounds.push({ alone, beside });
        writers.push(...(await tell(peers, { kind: "refused" })).writers);
        await until("all slow readers are cut", () => readEntries(gateway, opened.ids, entries), CUT_MS);
        read.push(...(await tell(peers, { kind: "drain", readers: DRAINED })).read);
      }
      for (const [id, { ending, status, source, charged_usd }] of entries) {
        assertEquals([ending, status, source], ["client_disconnected", 200, "counted"], id);
        assertGreater(parseUsd(String(charged_usd)), 0n);
      }
      // The cost is exactly that of the sent part.
      for (const { id, words } of read) {
        const { tokens, charged_usd } = entries.get(id) as { tokens: Record<string, number>; charged_usd: string };
        assertEquals(tokens.completion, words, id);
        const cost = BigInt(words) * COMPLETION + BigInt(tokens.prompt ?? 0) * 1_000_000n;
        assertEquals(parseUsd(charged_usd), cost, id);
      }
      // Requests that were never complete cost nothing.
      const charged = await askAdmin(gateway, "GET", "requests?status=408&min_cost_usd=0.000000000001");
      assertEquals(charged.data, []);
      const { ok, differences, checked } = await askAdmin(gateway, "POST", "audit");
      assertEquals([ok, differences, (checked as JsonObject).holds], [true, [], 0]);
      gateway.kill("SIGTERM");
      isOver = true;
      const { code, err } = await gateway.ended;
      assertEquals([code, err.includes('"level":"error"')], [0, false], err.slice(-2_000));

      assertEquals(writers.length, ROUNDS * WRITERS);
      const heard = writers.filter(({ text }) => text !== "");
      assertLess(writers.length - heard.length, writers.length / RESET_OF);
      for (const each of heard) assertRefused(each);
      for (const each of read) assertCut(each);
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
        readers_cut: entries.size,
        readers_billed_exactly: read.length,
        writers_refused: heard.length,
        writers_reset: writers.length - heard.length,
        errors_of_others: 0,
        // Load of the machine: with more work than cores, times describe it rather than the gateway.
        load_average: Deno.loadavg()[0] ?? 0,
      };
      await publish("slow_peers", figures);
      assertLess(Math.max(...grown) / (READERS + WRITERS), PER_PEER_BYTES);
      if (isQuiet) assertLess(ratio, 2);
    }),
});

/** Reads the entries that are missing. Returns whether all of these are in the ledger. */
async function readEntries(
  gateway: Running,
  ids: readonly string[],
  entries: Map<string, JsonObject>,
): Promise<boolean> {
  for (const id of ids) {
    if (entries.has(id)) continue;
    const entry = await askAdmin(gateway, "GET", `usage/req_${id}`);
    if (entry.state !== "ended") return false;
    entries.set(id, entry);
  }
  return true;
}

async function askAdmin({ origin }: Running, method: string, path: string): Promise<JsonObject> {
  const headers = { authorization: `Bearer ${ENV.ADMIN_KEY}` };
  return await (await fetch(`${origin}/admin/v1/${path}`, { method, headers })).json();
}
