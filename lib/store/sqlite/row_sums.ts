/**
 * Adds up rows by their names. Rows are arrays of numbers. They are grouped here and not by SQLite, which would group
 * each page of rows separately: that would be the slowest part if most rows of a page have different names.
 */
import type { UpstreamDaySum, UsageSum } from "../ledger.ts";

/** Figures that are amounts; the others are counts. */
const AMOUNT_FIGURES: ReadonlySet<string> = new Set(["cost", "overrun", "saved", "target_cost"]);

/** Factor of the upper half of an amount. */
const TWO_32 = 2 ** 32;

/** Figures of a sum. */
export type RowFigures =
  & Omit<UsageSum, "name" | "thenName">
  & Pick<UpstreamDaySum, "counted" | "attempts" | "targetCost">;

/** A name or a figure of a row. */
type Value = string | number;

/**
 * Returns the selected columns of a figure. JavaScript numbers above 2^53 are inexact: amounts are read as two halves,
 * and counts as floating-point numbers, which are exact up to that.
 */
export function figureColumns(name: string, value: string): string {
  return AMOUNT_FIGURES.has(name) ? `(${value}) >> 32, (${value}) & 4294967295` : `(${value}) + 0.0`;
}

/** Collects sums of rows by their names, which are the first columns. */
export class RowSums {
  readonly #nameCount: number;
  /** Index of the lower half of each amount among the cells of a sum. */
  readonly #lowHalves: readonly number[];
  readonly #cellCount: number;
  /** Nested maps from the first name to the next one and so on, and from the last name to the cells of the sum. */
  readonly #tree = new Map<Value, unknown>();
  readonly #sums: { names: Value[]; cells: number[] }[] = [];

  /**
   * @param columns `names`: the number of names; `figures`: names of the figures, of which rows may lack the last ones
   */
  constructor({ names, figures }: { names: number; figures: readonly string[] }) {
    this.#nameCount = names;
    const lowHalves: number[] = [];
    let cells = 0;
    for (const name of figures) {
      cells += AMOUNT_FIGURES.has(name) ? 2 : 1;
      if (AMOUNT_FIGURES.has(name)) lowHalves.push(cells - 1);
    }
    this.#lowHalves = lowHalves;
    this.#cellCount = cells;
  }

  /** Adds rows. Amounts must be split as `figureColumns` does. */
  add(rows: readonly (readonly Value[])[]): void {
    const names = this.#nameCount;
    for (const row of rows) {
      const cells = this.#cellsOf(row);
      const length = row.length - names;
      for (let cell = 0; cell < length; cell++) cells[cell] = (cells[cell] ?? 0) + (row[names + cell] as number);
      for (const low of this.#lowHalves) carry(cells, low);
    }
  }

  /** Yields all sums, in the order in which their first rows were added. */
  *list(): Generator<{ names: readonly Value[]; figures: RowFigures }> {
    for (const { names, cells } of this.#sums) yield { names, figures: toFigures(cells) };
  }

  /** Returns the cells of the sum to which a row belongs. */
  #cellsOf(row: readonly Value[]): number[] {
    let node = this.#tree;
    const last = this.#nameCount - 1;
    for (let name = 0; name < last; name++) {
      const value = row[name] as Value;
      let next = node.get(value) as typeof node | undefined;
      if (next === undefined) node.set(value, next = new Map());
      node = next;
    }
    const value = row[last] as Value;
    let cells = node.get(value) as number[] | undefined;
    if (cells === undefined) {
      cells = new Array<number>(this.#cellCount).fill(0);
      node.set(value, cells);
      this.#sums.push({ names: row.slice(0, this.#nameCount), cells });
    }
    return cells;
  }
}

/** Moves what exceeds 32 bits from the lower half of an amount to the upper half, so that both stay exact. */
function carry(cells: number[], low: number): void {
  const value = cells[low] ?? 0;
  if (value < TWO_32) return;
  const high = Math.floor(value / TWO_32);
  cells[low] = value - high * TWO_32;
  cells[low - 1] = (cells[low - 1] ?? 0) + high;
}

/** Converts the cells of a sum to figures. The order is that of `SUM_TABLES.upstreams.figures`. */
function toFigures(cells: readonly number[]): RowFigures {
  const [requests = 0, failed = 0, prompt = 0, read = 0, write5m = 0, write1h = 0, completion = 0, reasoning = 0] =
    cells;
  const amount = (high: number) => (BigInt(cells[high] ?? 0) << 32n) + BigInt(cells[high + 1] ?? 0);
  return {
    requests,
    failed,
    tokens: {
      prompt,
      input_cache_read: read,
      input_cache_write_5m: write5m,
      input_cache_write_1h: write1h,
      completion,
      reasoning,
    },
    images: cells[8] ?? 0,
    cost: amount(9),
    overrun: amount(11),
    saved: amount(13),
    counted: cells[15] ?? 0,
    attempts: cells[16] ?? 0,
    targetCost: amount(17),
  };
}
