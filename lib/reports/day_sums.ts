/** Sums per day made anew from single entries, to compare with those that are kept. */
import { NO_TOKENS } from "../metering/billed.ts";
import type { BilledTokens, DaySum, KeptEntry } from "../store/ledger.ts";

const DAY_MS = 86_400_000;

/** Endings of requests that count as failed. */
const FAILED: ReadonlySet<string> = new Set(["failed", "refused", "lost"]);

const TOKENS: readonly (keyof BilledTokens)[] = [
  "prompt",
  "input_cache_read",
  "input_cache_write_5m",
  "input_cache_write_1h",
  "completion",
  "reasoning",
];

/** Whose sum it is: the day, the key, the group and the model. */
export function nameOfDaySum({ day, keyId, group, model }: Pick<DaySum, "day" | "keyId" | "group" | "model">): string {
  return `${day}\n${keyId}\n${group}\n${model}`;
}

/** Sums over entries, by `nameOfDaySum`. */
export class DaySums {
  readonly #sums = new Map<string, DaySum>();

  /** Adds an entry. */
  add(entry: KeptEntry): void {
    const sum = this.#sumOf(entry);
    sum.requests++;
    if (FAILED.has(entry.ending)) sum.failed++;
    for (const name of TOKENS) sum.tokens[name] += entry.tokens[name];
    sum.images += entry.images;
    sum.cost += entry.cost;
    sum.overrun += entry.overrun;
  }

  /** The sum of this name; `undefined` where no entry belongs to it. */
  get(name: string): DaySum | undefined {
    return this.#sums.get(name);
  }

  /** All sums with their names. */
  entries(): MapIterator<[string, DaySum]> {
    return this.#sums.entries();
  }

  #sumOf({ at, keyId, group, model }: KeptEntry): DaySum {
    const whose = { day: (at - at % DAY_MS) / DAY_MS, keyId, group, model };
    const name = nameOfDaySum(whose);
    let sum = this.#sums.get(name);
    if (sum === undefined) {
      sum = { ...whose, requests: 0, failed: 0, tokens: { ...NO_TOKENS }, images: 0, cost: 0n, overrun: 0n };
      this.#sums.set(name, sum);
    }
    return sum;
  }
}

/** True where no figure of the one is above that of the other. */
export function isWithin(one: DaySum, other: DaySum): boolean {
  return one.requests <= other.requests && one.failed <= other.failed && one.images <= other.images &&
    one.cost <= other.cost && one.overrun <= other.overrun &&
    TOKENS.every((name) => one.tokens[name] <= other.tokens[name]);
}

/** True where every figure is the same. */
export function isSame(one: DaySum, other: DaySum): boolean {
  return isWithin(one, other) && isWithin(other, one);
}

/** A sum of nothing, for the same day, key, group and model. */
export function emptyLike({ day, keyId, group, model }: DaySum): DaySum {
  return {
    day,
    keyId,
    group,
    model,
    requests: 0,
    failed: 0,
    tokens: { ...NO_TOKENS },
    images: 0,
    cost: 0n,
    overrun: 0n,
  };
}
