/**
 * Postgres and Redis fail and recover at random for minutes, under load: no answered request is lost, no budget is
 * overdrawn.
 */
import { assert, assertEquals, assertGreater, assertLess } from "@std/assert";
import type { JsonObject } from "../../lib/json/mod.ts";
import { formatUsd } from "../../lib/billing/money.ts";
import { type Engine, HAS_POSTGRES, HAS_REDIS, startPostgres } from "../support/databases.ts";
import { assertSound, metric, type Node, readEntries, startCluster } from "../e2e/nodes/cluster.ts";
import {
  assertLedgerAgrees,
  createLoad,
  ENV as LOAD_ENV,
  KEY,
  type Load,
  modelConfigOf,
  pricedModel,
} from "../e2e/program/load.ts";
import { type Random, seeded } from "../support/random.ts";
import { type Figure, publish } from "./figures.ts";
import { pause, until } from "../support/soon.ts";

/** Duration of the outages, in milliseconds. */
const CHAOS_MS = Number(Deno.env.get("HEAVY_CHAOS_MS") ?? 180_000);
/** Lengths of an outage, and of the times between, in milliseconds. */
const GONE_MS = { least: 100, most: 7_000 };
const THERE_MS = { least: 100, most: 5_000 };
const NODES = 3;
const CLIENTS = 4;
/** Longest that any request may take, whatever is unreachable, in milliseconds. */
const LONGEST_MS = 15_000;
const BACK_MS = 60_000;
/** Budget of the poor key: far less than it requests. */
const BUDGET = 3_000_000_000n;
const PER_MINUTE = 60;
const SEED = Number(Deno.env.get("HEAVY_SEED") ?? 7);

const SECRETS = { POOR_KEY: "key-of-one-with-a-budget", TIGHT_KEY: "key-of-one-with-limits" };
const ENV = { ...LOAD_ENV, ...SECRETS };

function configFor(load: Load): JsonObject {
  const { upstreams, models, routing } = modelConfigOf(load);
  return {
    upstreams,
    routing,
    models: [...models, pricedModel("acme/echo", { upstream: "embedded", model: "echo" })],
    keys: [
      { name: "load", key: { env: KEY.env }, limits: { concurrency: 1_000, requests_per_minute: 1_000_000 } },
      { name: "poor", key: { env: "POOR_KEY" }, budget: { usd: formatUsd(BUDGET), period: "total" } },
      { name: "tight", key: { env: "TIGHT_KEY" }, limits: { requests_per_minute: PER_MINUTE } },
    ],
    nodes: { lease_seconds: 5, key_age_seconds: 600 },
    shutdown: { drain_seconds: 5 },
    log: { requests: "none" },
  };
}

/** Answers that one client of the embedded model saw. */
interface Watched {
  answered: string[];
  statuses: Record<number, number>;
  longestMs: number;
}

async function askEcho(node: Node, key: string, watched: Watched): Promise<number> {
  const begun = performance.now();
  const response = await fetch(`${node.origin}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: "acme/echo", max_tokens: 20, messages: [{ role: "user", content: "Hello" }] }),
  });
  await response.text();
  const { status } = response;
  if (status === 200) watched.answered.push(response.headers.get("x-request-id")?.replace("req_", "") ?? "");
  watched.statuses[status] = (watched.statuses[status] ?? 0) + 1;
  watched.longestMs = Math.max(watched.longestMs, performance.now() - begun);
  return status;
}

/** Sends requests continuously with a key whose budget is too small for all of them. */
function spend(nodes: readonly Node[], watched: Watched): { stop(): Promise<void> } {
  let isOver = false;
  const running = Promise.all(nodes.map(async (node) => {
    while (!isOver) {
      await askEcho(node, SECRETS.POOR_KEY, watched);
      await pause(20);
    }
  }));
  return {
    async stop() {
      isOver = true;
      await running;
    },
  };
}

/** Stops and restarts engines. Returns how often in each way. */
async function chaos(engines: Record<string, Engine>, random: Random): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const between = ({ least, most }: { least: number; most: number }) => least + random.next() * (most - least);
  const until = performance.now() + CHAOS_MS;
  // Independently of each other, so that at times both are gone.
  await Promise.all(
    Object.entries(engines).map(async ([name, engine]) => {
      while (performance.now() < until) {
        await pause(between(THERE_MS));
        const how = random.pick(["crash", "orderly", "still"] as const);
        counts[`${name}_${how}`] = (counts[`${name}_${how}`] ?? 0) + 1;
        if (how === "still") engine.signal("SIGSTOP");
        else await engine.stop(how);
        await pause(between(GONE_MS));
        if (how === "still") engine.signal("SIGCONT");
        else await engine.start();
      }
    }),
  );
  return counts;
}

Deno.test({
  name: `Postgres and Redis come and go at random for ${
    CHAOS_MS / 1000
  } s: all that was answered is entered once, and exactness is back`,
  ignore: !(HAS_POSTGRES && HAS_REDIS),
  fn: async () => {
    const random = seeded(SEED);
    await using load = createLoad(random.next);
    await using postgres = await startPostgres();
    await using cluster = await startCluster({ config: configFor(load), nodes: NODES, env: ENV, postgres });
    const { nodes, redis } = cluster;
    const watched: Watched = { answered: [], statuses: {}, longestMs: 0 };
    const running = nodes.map(({ origin }) => load.run(origin, CLIENTS));
    const spending = spend(nodes, watched);
    const counts = await chaos({ postgres, redis }, random);
    await spending.stop();
    for (const each of running) await each.stop();

    const backAt = performance.now();
    for (const node of nodes) {
      for (const name of ["sluice_store_up", "sluice_limits_store_up"]) {
        await until(name, async () => await metric(node, name) === 1, BACK_MS);
      }
      await until(
        "the journal has settled",
        async () => await metric(node, "sluice_store_journal_entries") === 0,
        BACK_MS,
      );
    }
    const backMs = Math.round(performance.now() - backAt);
    // Limits hold across all nodes again. What was counted in an outage may still count.
    await pause(61_000);
    const tight: Watched = { answered: [], statuses: {}, longestMs: 0 };
    await Promise.all(Array.from({ length: 12 }, async (_, client) => {
      for (let count = 0; count < 15; count++) {
        await askEcho(nodes[(client + count) % nodes.length] as Node, SECRETS.TIGHT_KEY, tight);
      }
    }));
    assertEquals(tight.statuses, { 200: PER_MINUTE, 429: 12 * 15 - PER_MINUTE });
    await until(
      "nothing is held any more",
      () => cluster.withLedger(async (ledger) => (await ledger.holds()).length === 0),
      90_000,
    );
    // The holds of outages are released: the poor key can spend the rest.
    const rest: Watched = { answered: [], statuses: {}, longestMs: 0 };
    await until(
      "the budget is spent",
      async () => await askEcho(nodes[0] as Node, SECRETS.POOR_KEY, rest) === 429,
      BACK_MS,
    );
    for (const node of nodes) {
      node.kill("SIGTERM");
      assertEquals((await node.ended).code, 0);
    }

    const entries = await cluster.withLedger(readEntries);
    const ofLoad = entries.filter(({ model }) => model === "acme/one");
    // Keys of the configuration without a budget are served whatever is unreachable.
    const refusal = load.requests.find(({ way, refusal }) => way !== "refused" && refusal !== undefined);
    assertEquals(refusal, undefined);
    const { complete, unseen } = assertLedgerAgrees(ofLoad, load.requests);
    assertGreater(complete, 500);
    const byId = new Map(entries.map((entry) => [entry.id, entry]));
    assertEquals(byId.size, entries.length);
    const poor = entries.filter(({ keyId }) => keyId === "config:poor");
    const spent = poor.reduce((sum, { cost }) => sum + cost, 0n);
    assert(spent <= BUDGET, `${spent} of ${BUDGET} were spent`);
    const most = poor.reduce((most, { held }) => held > most ? held : most, 0n);
    assert(BUDGET - spent < most, `${spent} of ${BUDGET} were spent, and a request can cost ${most}`);
    const voided = watched.answered.filter((id) => byId.get(id)?.ending === "lost").length;
    for (const id of watched.answered) assert(byId.has(id), `req_${id} was answered and is not in the ledger`);
    assertLess(watched.longestMs, LONGEST_MS);
    assertEquals(Object.keys(watched.statuses).filter((status) => !["200", "429", "503"].includes(status)), []);
    await assertSound(cluster);
    const figures: Record<string, Figure> = {
      seconds: CHAOS_MS / 1000,
      nodes: NODES,
      outages: counts,
      requests: load.requests.length,
      complete_answers: complete,
      complete_answers_missing: 0,
      entered_twice: 0,
      charged_but_unseen: unseen,
      refused_without_budget: 0,
      with_budget: { statuses: watched.statuses, longest_ms: Math.round(watched.longestMs), voided },
      budget_usd: formatUsd(BUDGET),
      spent_usd: formatUsd(spent),
      back_ms: backMs,
      limit_after: { limit: PER_MINUTE, admitted: tight.statuses[200] ?? 0 },
    };
    await publish("outages", figures);
  },
});
