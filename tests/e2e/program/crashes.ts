/** The gateway is killed at random moments under load, and started again: the books, budgets and keys are right each time. */
import { assert, assertEquals, assertLess } from "@std/assert";
import { auditLedger } from "../../../lib/billing/reports/audit.ts";
import type { StoreAddress } from "../../../lib/config/address.ts";
import type { JsonObject } from "../../../lib/json/mod.ts";
import type { KeptEntry } from "../../../lib/store/ledger.ts";
import { openStore } from "../../../lib/store/open.ts";
import { run, type Running, start } from "../../support/program.ts";
import { readEntries } from "../nodes/cluster.ts";
import { ADMIN, KeyWorker } from "./key_worker.ts";
import { assertLedgerAgrees, ENV as LOAD_ENV, KEY, type Load, modelConfigOf } from "./load.ts";
import { until } from "../../support/soon.ts";
import { availableIn } from "../../support/available.ts";

const CLIENTS = 16;
/** Shortest and longest time from ready to the kill, in milliseconds. */
const LIFE_MS = { least: 60, most: 1_500 };
/** Longest time from a start after a kill until the gateway is ready, in milliseconds; most starts take less, busy machine or not. */
const READY_MS = 30_000;
/** Longest time until an idle node voids the holds of dead ones: it sweeps every minute. */
const SWEPT_MS = 75_000;
/** Seconds for which a node's holds outlive it, with Postgres. */
const LEASE_SECONDS = 2;
const BUDGET = 10n ** 17n;
/** Environment of the program. */
export const ENV = { ...LOAD_ENV, [ADMIN.env]: ADMIN.secret };

/** A configuration for the load, an admin key and a budget. */
export function configFor(load: Load, more: JsonObject): string {
  const budget = { usd: "100000", period: "total" };
  return JSON.stringify({
    ...modelConfigOf(load),
    groups: { default: { budget, key_budget: budget, limits: { concurrency: 1_000 } } },
    keys: [{ name: "load", key: { env: KEY.env } }],
    admin: { key: { env: ADMIN.env } },
    nodes: { lease_seconds: LEASE_SECONDS },
    log: { requests: "none" },
    ...more,
  });
}

/** Starts the gateway, and waits until it is ready. */
async function startReady(place: { folder: string; env: Record<string, string> }) {
  const begun = performance.now();
  const gateway = await start(["serve"], place);
  for (;;) {
    const response = await fetch(`${gateway.origin}/readyz`);
    await response.body?.cancel();
    if (response.status === 200) return { gateway, ms: performance.now() - begun };
    assertLess(performance.now() - begun, 60_000, "it was never ready");
  }
}

/** Audits the ledger beside the running gateway. */
async function examine(address: StoreAddress, load: Load) {
  const store = await openStore(address);
  try {
    const entries = await readEntries(store.ledger);
    const findings = assertLedgerAgrees(entries, load.requests);
    const holds = await store.ledger.holds();
    const left = await availableIn(store.ledger, { scope: "group", id: "default", budget: BUDGET, since: 0 });
    const { ok, differences } = await auditLedger(store.ledger);
    assertEquals([ok, differences], [true, []]);
    return { ...findings, entries, holds, left };
  } finally {
    await store.close();
  }
}

/** Requests whose clients have their whole answer. */
function answered({ requests }: Load): number {
  return requests.filter(({ paid }) => paid !== undefined).length;
}

/** Counts of the run. */
export interface Crashes {
  /** The last entries of the ledger. */
  entries: readonly KeptEntry[];
  /** Answers that a client received whole, and those that were charged although no client saw their end. */
  complete: number;
  unseen: number;
  /** Requests that cost nothing because their process died. */
  lost: number;
  /** Keys whose creation was acknowledged. */
  keys: number;
  /** Times from a start until the gateway was ready, in milliseconds, the shortest first. */
  starts: readonly number[];
}

/**
 * Kills the gateway repeatedly under load and restarts it.
 * @param options `restMs`: pause of a client between two requests, in milliseconds
 * @throws {AssertionError} if something is lost or wrong
 */
export async function crashOften(
  place: { folder: string; env: Record<string, string> },
  { address, load, isShared, kills, restMs }: {
    address: StoreAddress;
    load: Load;
    isShared: boolean;
    kills: number;
    restMs?: number;
  },
): Promise<Crashes> {
  const keys = new KeyWorker();
  const starts: number[] = [];
  let gateway: Running | undefined;
  try {
    for (let kill = 0; kill < kills; kill++) {
      const started = await startReady(place);
      gateway = started.gateway;
      starts.push(Math.round(started.ms));
      await keys.compare(gateway.origin);
      // Alone on its store a gateway voids what it finds; beside others it waits for the end of the lease.
      if (!isShared) {
        const { holds, left, spent } = await examine(address, load);
        assertEquals([holds, left], [[], BUDGET - spent], `after kill ${kill}`);
      }
      keys.start(gateway.origin);
      const running = load.run(gateway.origin, CLIENTS, restMs);
      const life = LIFE_MS.least + Math.random() * (LIFE_MS.most - LIFE_MS.least);
      const before = answered(load);
      // One request that certainly holds something at the kill.
      const finish = await load.hold(gateway.origin);
      await new Promise((resolve) => setTimeout(resolve, life));
      await until("two answers", () => answered(load) > before + 1);
      gateway.kill("SIGKILL");
      const left = finish().catch(() => {});
      await gateway.ended;
      await Promise.all([running.stop(), keys.stop(), left]);
      if (isShared) await examine(address, load);
    }
    gateway = (await startReady(place)).gateway;
    await keys.compare(gateway.origin);
    if (isShared) {
      await until(
        "what the dead held is void",
        async () => (await examine(address, load)).holds.length === 0,
        SWEPT_MS,
      );
    }
    const { entries, complete, unseen, spent, holds, left } = await examine(address, load);
    assertEquals([holds, left], [[], BUDGET - spent]);
    gateway.kill("SIGTERM");
    assertEquals((await gateway.ended).code, 0);
    const audit = await run(["audit"], place);
    assertEquals([audit.code, audit.err], [0, ""], audit.out);
    const lost = entries.filter(({ ending }) => ending === "lost").length;
    assert(lost >= kills, `${lost} lost requests`);
    assert(complete > kills, `only ${complete} complete answers`);
    starts.sort((a, b) => a - b);
    assertLess(starts[starts.length >> 1] ?? 0, READY_MS);
    return { entries, complete, unseen, lost, keys: keys.count, starts };
  } finally {
    try {
      gateway?.kill("SIGKILL");
    } catch {
      // It has ended.
    }
    await gateway?.ended;
  }
}
