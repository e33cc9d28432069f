/** Prunes old ledger entries periodically while the gateway serves. */
import type { Gateway } from "../gateway.ts";
import { describeCause } from "../server/cause.ts";
import { DAY_MS } from "../store/days.ts";
import { firstKeptDay } from "./prune.ts";

/** Time until the first round, in milliseconds. */
const FIRST_ROUND_MS = 60_000;
/** Interval between two rounds, in milliseconds. */
const ROUND_INTERVAL_MS = 3_600_000;

/** Pause between two steps of a round, in milliseconds, so that requests are served in between. */
const PAUSE_MS = 20;

type PrunedGateway = Pick<Gateway, "config" | "store" | "now" | "log">;

/**
 * Prunes after `firstMs` milliseconds and then every `everyMs`. Each round uses the time of the clock, but at most two
 * intervals more than the previous round, because a clock may jump ahead. Returns a function that stops it.
 */
export function startPruning(
  current: () => PrunedGateway,
  { firstMs = FIRST_ROUND_MS, everyMs = ROUND_INTERVAL_MS } = {},
): () => void {
  let hasEnded = false;
  let latest = Infinity;
  async function round(): Promise<void> {
    const { config, store, now, log } = current();
    const at = Math.min(now(), latest);
    latest = at + 2 * everyMs;
    try {
      const firstDay = firstKeptDay(config, at);
      await store.operators.pruneChanges(firstDay * DAY_MS);
      while (!hasEnded && await store.ledger.prune(firstDay)) await pause();
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

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
}
