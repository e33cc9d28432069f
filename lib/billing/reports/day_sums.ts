/** Computes sums per day from single entries, to compare them with the stored sums. */
import { addFigures, dayOf, figuresOf, noFigures, TOKEN_CLASSES } from "../../store/days.ts";
import type { DaySum, KeptEntry } from "../../store/ledger.ts";

/** The members that identify a daily sum. */
type SumKey = Pick<DaySum, "day" | "keyId" | "group" | "model">;

/** Returns a name that is unique among the sums of a day. */
export function nameOfDaySum({ keyId, group, model }: Omit<SumKey, "day">): string {
  return `${keyId}\n${group}\n${model}`;
}

/** Computes sums of entries by day, key, group and model. */
export class DaySums {
  readonly #days = new Map<number, Map<string, DaySum>>();

  add(entry: KeptEntry): void {
    addFigures(this.#sumOf(entry), figuresOf(entry));
  }

  /** Returns the sums from one day to another, both included. */
  within(first: number, last: number): DaySum[] {
    return [...this.#days].flatMap(([day, sums]) => first <= day && day <= last ? [...sums.values()] : []);
  }

  #sumOf({ at, keyId, group, model }: KeptEntry): DaySum {
    const day = dayOf(at);
    let sums = this.#days.get(day);
    if (sums === undefined) this.#days.set(day, sums = new Map());
    const name = nameOfDaySum({ keyId, group, model });
    let sum = sums.get(name);
    if (sum === undefined) sums.set(name, sum = emptySum({ day, keyId, group, model }));
    return sum;
  }
}

/** Returns whether no figure of `one` exceeds that of `other`. */
export function isWithin(one: DaySum, other: DaySum): boolean {
  return one.requests <= other.requests && one.failed <= other.failed && one.images <= other.images &&
    one.cost <= other.cost && one.overrun <= other.overrun &&
    TOKEN_CLASSES.every((name) => one.tokens[name] <= other.tokens[name]);
}

/** Returns whether all figures are equal. */
export function isSame(one: DaySum, other: DaySum): boolean {
  return isWithin(one, other) && isWithin(other, one);
}

/** Returns a sum whose figures are 0. */
export function emptySum({ day, keyId, group, model }: SumKey): DaySum {
  return { day, keyId, group, model, ...noFigures() };
}
