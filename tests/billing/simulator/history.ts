/**
 * Histories: the steps of a run. Each step has its own random seed, so a history with fewer steps is valid: a failing
 * one is minimized by dropping steps.
 */
import { seeded } from "../../support/random.ts";
import { moodOf } from "./mood.ts";

/** The steps of a run. */
export interface History {
  /** Seed of the mood and the steps. */
  seed: number;
  /** Numbers of the executed steps, in order. */
  steps: readonly number[];
}

/** Random stream of the end of a run. */
export const LAST_STEP = -1;

/** Maximum number of runs for shortening a history. */
const MAX_TRIES = 600;

/** The whole history of a seed. */
export function historyOf(seed: number): History {
  const { steps } = moodOf(seeded(seed));
  return { seed, steps: Array.from({ length: steps }, (_, step) => step) };
}

/** The seed of a step's chance. */
export function seedOf(seed: number, step: number): number {
  return seeded(Math.imul(seed, 0x9e3779b1) ^ Math.imul(step + 2, 0x85ebca6b)).below(2 ** 32);
}

/** A history as `readHistory` reads it: `12` is a whole one, `12:0,7,9` has three steps. */
export function writeHistory({ seed, steps }: History): string {
  return steps.length === historyOf(seed).steps.length ? String(seed) : `${seed}:${steps.join(",")}`;
}

/** Reads a history. @throws {RangeError} for any other text */
export function readHistory(text: string): History {
  const [, seed, steps] = /^(\d+)(?::([\d,]*))?$/.exec(text) ?? [];
  if (seed === undefined) throw new RangeError(`Cannot read the history "${text}"`);
  if (steps === undefined) return historyOf(Number(seed));
  return { seed: Number(seed), steps: steps.split(",").filter((step) => step !== "").map(Number) };
}

/**
 * Drops steps while the history still fails: first halves, then smaller pieces, then single steps.
 * @param fails returns whether a history fails in the same way
 */
export async function shrink(history: History, fails: (history: History) => Promise<boolean>): Promise<History> {
  let best = history;
  let tries = 0;
  for (let size = Math.ceil(best.steps.length / 2); size >= 1 && tries < MAX_TRIES;) {
    let dropped = false;
    for (let from = 0; from < best.steps.length && tries < MAX_TRIES;) {
      const fewer = { ...best, steps: best.steps.toSpliced(from, size) };
      tries++;
      if (await fails(fewer)) {
        best = fewer;
        dropped = true;
      } else from += size;
    }
    if (!dropped || size > best.steps.length) {
      if (size === 1) break;
      size = Math.ceil(size / 2);
    }
  }
  return best;
}
