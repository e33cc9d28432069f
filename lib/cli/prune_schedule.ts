/** Prunes old requests while the gateway serves. */
import type { Gateway } from "../gateway.ts";
import { describeCause } from "../server/cause.ts";
import { DAY_MS } from "../store/days.ts";
import { firstKeptDay } from "./prune.ts";

/** Time until the first round, and between two of them, in milliseconds. */
const FIRST_MS = 60_000;
const PRUNE_MS = 3_600_000;

/** Pause between two steps of a round, in milliseconds, so that requests go first. */
const PAUSE_MS = 20;

/** Parts of the gateway that pruning needs. */
type Pruned = Pick<Gateway, "config" | "store" | "now" | "log">;

/** Prunes every hour, first after `firstMs` milliseconds. Returns a function that stops it. */
export function startPruning(current: () => Pruned, { firstMs = FIRST_MS } = {}): () => void {
  let isOver = false;
  async function round(): Promise<void> {
    const { config, store, now, log } = current();
    try {
      const firstDay = firstKeptDay(config, now());
      await store.operators.pruneChanges(firstDay * DAY_MS);
      while (!isOver && await store.ledger.prune(firstDay)) await pause();
    } catch (error) {
      if (!isOver) log({ level: "warn", event: "prune_failed", ...describeCause(error) });
    }
  }
  const first = setTimeout(round, firstMs);
  const others = setInterval(round, PRUNE_MS);
  return () => {
    isOver = true;
    clearTimeout(first);
    clearInterval(others);
  };
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
}
