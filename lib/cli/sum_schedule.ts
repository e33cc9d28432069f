/** Makes the sums that reports and searches read, while the gateway serves. */
import type { Gateway } from "../gateway.ts";
import { describeCause } from "../server/cause.ts";

/** Time between two rounds, in milliseconds. */
const ROUND_MS = 2_000;

/** Pause between two steps of a round, in milliseconds, so that requests go first. */
const PAUSE_MS = 20;

/** Parts of the gateway that it needs. */
type Summed = Pick<Gateway, "store" | "log">;

/**
 * Brings the sums up to date every two seconds: those of a new store in steps of 2,000 entries, which take some
 * milliseconds each. Returns a function that stops it.
 */
export function startSummingUp(current: () => Summed, { roundMs = ROUND_MS } = {}): () => void {
  let isOver = false;
  let isFailing = false;
  let timer = setTimeout(round, roundMs);

  async function round(): Promise<void> {
    const { store, log } = current();
    try {
      while (!isOver && await store.ledger.sumUp()) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      isFailing = false;
    } catch (error) {
      // Once, however long a database is away.
      if (!isOver && !isFailing) log({ level: "warn", event: "sums_failed", ...describeCause(error) });
      isFailing = true;
    }
    if (!isOver) timer = setTimeout(round, roundMs);
  }

  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}
