/** Searches for a history that breaks an invariant, and minimizes it. */
import { type History, shrink } from "./history.ts";
import { Failure, simulate, type Summary, type Variant } from "./simulate.ts";

/** Results of many runs. */
export interface Tally {
  runs: number;
  steps: number;
  requests: number;
  crashes: number;
  overruns: number;
  /** Number of requests that ended so, or were refused for that. */
  seen: Map<string, number>;
}

/** The seed at which a search ends without a failure. */
export interface Search extends Variant {
  /** Absent: when all histories were run. */
  isEnough?: (tally: Tally) => boolean;
}

/**
 * Runs histories one after the other.
 * @throws {Failure} with the shortest history that breaks the same invariant as the first that breaks any
 */
export async function runAll(
  histories: Iterable<number | History>,
  { isEnough = () => false, ...variant }: Search = {},
): Promise<Tally> {
  const tally: Tally = { runs: 0, steps: 0, requests: 0, crashes: 0, overruns: 0, seen: new Map() };
  for (const history of histories) {
    if (isEnough(tally)) break;
    count(tally, await runOrShrink(history, variant));
  }
  return tally;
}

/** The first failure among these histories, not yet shortened; `undefined` if none breaks an invariant. */
export async function firstFailure(
  histories: Iterable<number | History>,
  variant: Variant = {},
): Promise<Failure | undefined> {
  for (const history of histories) {
    try {
      await simulate(history, variant);
    } catch (thrown) {
      if (thrown instanceof Failure) return thrown;
      throw thrown;
    }
  }
}

async function runOrShrink(history: number | History, variant: Variant): Promise<Summary> {
  try {
    return await simulate(history, variant);
  } catch (thrown) {
    throw thrown instanceof Failure ? await shortest(thrown, variant) : thrown;
  }
}

/** The failure of the shortest history that fails like this one. */
export async function shortest(failure: Failure, variant: Variant = {}): Promise<Failure> {
  let best = failure;
  await shrink(failure.history, async (history) => {
    try {
      await simulate(history, variant);
      return false;
    } catch (thrown) {
      if (!(thrown instanceof Failure) || thrown.invariant !== failure.invariant) return false;
      best = thrown;
      return true;
    }
  });
  return best;
}

function count(tally: Tally, { steps, requests, crashes, overruns, endings, refusals }: Summary): void {
  tally.runs++;
  tally.steps += steps;
  tally.requests += requests;
  tally.crashes += crashes;
  tally.overruns += overruns;
  for (const name of [...endings, ...refusals]) tally.seen.set(name, (tally.seen.get(name) ?? 0) + 1);
}

/** Yields `count` consecutive seeds, beginning with `first`. */
export function* seedsFrom(first: number, count = Infinity): Generator<number> {
  for (let i = 0; i < count; i++) yield first + i;
}
