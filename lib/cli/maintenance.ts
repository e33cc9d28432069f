/** Periodic work of a gateway. */
import type { Gateway } from "../gateway.ts";
import { describeCause } from "../server/cause.ts";
import { startPruning } from "./prune_schedule.ts";
import { startMemoryRelease } from "./release_memory.ts";
import { startSummingUp } from "./sum_schedule.ts";

/** Interval of the sweeps, in milliseconds. */
const SWEEP_MS = 60_000;

/** Starts all periodic work of the present gateway. Returns a function that stops it. */
export function startMaintenance(current: () => Gateway, log: Gateway["log"]): () => void {
  const sweeping = setInterval(() => void sweep(current()), SWEEP_MS);
  const ends = [
    current().observer.loop.start(),
    startPruning(current),
    startSummingUp(current),
    startReports(current),
    startMemoryRelease({ running: () => current().observer.open.requests, log }),
    () => clearInterval(sweeping),
  ];
  return () => {
    for (const end of ends) end();
  };
}

/** Nodes of one store report themselves to each other. Only they load the modules for it. */
function startReports(current: () => Gateway): () => void {
  if (current().store.shared === undefined) return () => {};
  const started = import("../admin/nodes.ts").then(({ startNodeReports }) => startNodeReports(current));
  return () => void started.then((end) => end());
}

/**
 * Removes kept answers after their window and holds of nodes that have ended, and stores when
 * keys were last used.
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

/** Stores when keys were last used. A failure is logged. */
export async function flushKeys({ keys, log }: Gateway): Promise<void> {
  try {
    await keys.flush();
  } catch (error) {
    log({ level: "warn", event: "key_use_not_stored", ...describeCause(error) });
  }
}
