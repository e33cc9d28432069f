/** Keeps the sums that reports and searches read up to date while the gateway serves. */
import type { Gateway } from "../gateway.ts";
import { describeCause } from "../server/cause.ts";

/** Pause between two rounds, in milliseconds. */
const ROUND_PAUSE_MS = 2_000;

/** Pause between two steps of a round, in milliseconds, so that requests are served in between. */
const STEP_PAUSE_MS = 20;

type SummedGateway = Pick<Gateway, "store" | "log">;

/**
 * Updates the sums every two seconds, in steps of 2,000 entries that take some milliseconds each. Returns a function
 * that stops it.
 */
export function startSummingUp(current: () => SummedGateway, { roundMs = ROUND_PAUSE_MS } = {}): () => void {
  let hasEnded = false;
  let isFailing = false;
  let timer = setTimeout(round, roundMs);

  async function round(): Promise<void> {
    const { store, log } = current();
    try {
      while (!hasEnded && await store.ledger.sumUp()) {
        await new Promise((resolve) => setTimeout(resolve, STEP_PAUSE_MS));
      }
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
