/** Starts the periodic work of a gateway: sweeps, pruning, sums, reports of nodes, and the release of memory. */
import type { Gateway } from "../gateway.ts";
import { describeCause } from "../causes.ts";
import { startMemoryRelease } from "./release_memory.ts";
import { DAY_MS, dayOf } from "../store/days.ts";
import { firstKeptDay } from "./prune.ts";

/** Interval between two sweeps, in milliseconds. */
const SWEEP_INTERVAL_MS = 60_000;

/** Starts all periodic work. Returns a function that stops it. @param current returns the current gateway */
export function startMaintenance(current: () => Gateway, log: Gateway["log"]): () => void {
  const sweepTimer = setInterval(() => void sweep(current()), SWEEP_INTERVAL_MS);
  const ends = [
    current().observer.loop.start(),
    startPruning(current),
    startSummingUp(current),
    startReports(current),
    startMemoryRelease({ running: () => current().observer.open.requests, log }),
    () => clearInterval(sweepTimer),
  ];
  return () => {
    for (const end of ends) end();
  };
}

/** Starts the reports of this node to others, if the store is shared. The modules are loaded only in that case. */
function startReports(current: () => Gateway): () => void {
  if (current().store.shared === undefined) return () => {};
  const started = import("../admin/nodes.ts").then(({ startNodeReports }) => startNodeReports(current));
  return () => void started.then((end) => end());
}

/**
 * Stores when keys were last used, and removes budget holds of nodes that have ended and answers whose time for repeats
 * is over.
 */
async function sweep(gateway: Gateway): Promise<void> {
  const { idempotency, ledger, log } = gateway;
  await flushKeys(gateway);
  await ledger.sweep();
  try {
    await idempotency.sweep();
  } catch (error) {
    log({ level: "warn", event: "sweep_failed", ...describeCause(error) });
  }
}

/** Stores when keys were last used, or logs the failure to do so. */
export async function flushKeys({ keys, log }: Gateway): Promise<void> {
  try {
    await keys.flush();
  } catch (error) {
    log({ level: "warn", event: "key_use_not_stored", ...describeCause(error) });
  }
}

/** Pause between two rounds of sums, in milliseconds. */
const ROUND_PAUSE_MS = 2_000;

/** Pause between two steps of a round, in milliseconds, so that requests are served in between. */
const STEP_PAUSE_MS = 20;

type SummedGateway = Pick<Gateway, "store" | "log">;

/**
 * Updates the sums every two seconds, in steps that take a few milliseconds each. Returns a function that stops it.
 */
export function startSummingUp(current: () => SummedGateway, { roundMs = ROUND_PAUSE_MS } = {}): () => void {
  let hasEnded = false;
  let isFailing = false;
  let timer = setTimeout(round, roundMs);

  async function round(): Promise<void> {
    const { store, log } = current();
    try {
      while (!hasEnded && await store.ledger.sumUp()) await pause();
      isFailing = false;
    } catch (error) {
      // A failure is logged once, however long the database is unreachable.
      if (!hasEnded && !isFailing) log({ level: "warn", event: "sums_failed", ...describeCause(error) });
      isFailing = true;
    }
    if (!hasEnded) timer = setTimeout(round, roundMs);
  }

  return () => {
    hasEnded = true;
    clearTimeout(timer);
  };
}

const FIRST_ROUND_MS = 60_000;
/** Interval between two rounds of pruning, in milliseconds. */
const ROUND_INTERVAL_MS = 3_600_000;

type PrunedGateway = Pick<Gateway, "config" | "store" | "now" | "log">;

/**
 * Prunes after `firstMs` milliseconds and then every `everyMs`. Each round uses the time of the clock, but at most two
 * intervals more than the previous round, and the first one than the newest entry at the start, because a clock may be
 * ahead. If the clock stays ahead, this step doubles with each round, so that a gateway that was not used for a year
 * has caught up after half a day. Returns a function that stops it.
 */
export function startPruning(
  current: () => PrunedGateway,
  { firstMs = FIRST_ROUND_MS, everyMs = ROUND_INTERVAL_MS } = {},
): () => void {
  let hasEnded = false;
  let latest: number | undefined;
  let stepMs = 2 * everyMs;
  // Read it before this process adds entries, whose times come from the same clock.
  const newest = readNewest(current()).catch(() => undefined);
  async function round(): Promise<void> {
    const { config, store, now, log } = current();
    try {
      latest ??= (await newest ?? await readNewest(current())) + stepMs;
      const at = Math.min(now(), latest);
      stepMs = at === latest ? 2 * stepMs : 2 * everyMs;
      latest = at + stepMs;
      const firstDay = firstKeptDay(config, at);
      await store.operators.pruneChanges(firstDay * DAY_MS);
      while (!hasEnded && await store.ledger.prune(firstDay, dayOf(at))) await pause();
    } catch (error) {
      if (!hasEnded) log({ level: "warn", event: "prune_failed", ...describeCause(error) });
    }
  }
  const first = setTimeout(round, firstMs);
  const others = setInterval(round, everyMs);
  return () => {
    hasEnded = true;
    clearTimeout(first);
    clearInterval(others);
  };
}

/** Returns when the newest entry arrived, in Unix milliseconds; `Infinity` if there is none. */
async function readNewest({ store: { ledger } }: PrunedGateway): Promise<number> {
  const [newest] = await ledger.entries({ after: await ledger.lastSeq() - 1, limit: 1 });
  return newest?.at ?? Infinity;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, STEP_PAUSE_MS));
}
