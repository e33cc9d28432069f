/** Starts the periodic work of a gateway: sweeps, pruning, sums, reports of nodes, and the release of memory. */
import type { Gateway } from "../gateway.ts";
import { describeCause } from "../server/cause.ts";
import { startPruning } from "./prune_schedule.ts";
import { startMemoryRelease } from "./release_memory.ts";
import { startSummingUp } from "./sum_schedule.ts";

/** Interval between two sweeps, in milliseconds. */
const SWEEP_INTERVAL_MS = 60_000;

/** Starts all periodic work. Returns a function that stops it. @param current returns the present gateway */
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
