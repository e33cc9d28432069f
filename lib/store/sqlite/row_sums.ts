/**
 * Adds up rows of sums by their names. Rows are read as arrays of numbers, and grouped here: SQLite would group each slice
 * of rows anew, which takes longer than all else where most rows of a slice have names of their own.
 */
import type { BilledTokens } from "../ledger.ts";

const AMOUNTS: ReadonlySet<string> = new Set(["cost", "overrun", "saved", "target_cost"]);

const TWO_32 = 2 ** 32;

/** Figures of a sum. Amounts are in 1e-12 USD. */
export interface RowFigures {
  requests: number;
  failed: number;
  tokens: BilledTokens;
  images: number;
  cost: bigint;
  overrun: bigint;
  saved: bigint;
  counted: number;
  attempts: number;
  targetCost: bigint;
}

type Value = string | number;

/**
 * The selected columns of a figure. Numbers above 2^53 cannot be read as such: amounts are read as two halves, and counts
 * as floating-point numbers, which are exact up to there.
 */
export function figureColumns(name: string, value: string): string {
  return AMOUNTS.has(name) ? `(${value}) >> 32, (${value}) & 4294967295` : `(${value}) + 0.0`;
}

/** Sums of rows by their names, which are the first columns. */
export class RowSums {
  readonly #names: number;
  /** Place of the lower half of each amount in a sum. */
  readonly #lowHalves: readonly number[];
  readonly #cells: number;
  /** Sums by the first name, then by the next one, and so on. */
  readonly #tree = new Map<Value, unknown>();
  readonly #sums: { names: Value[]; cells: number[] }[] = [];

  /** @param of the number of names, and the figures; rows may lack the last of them */
  constructor({ names, figures }: { names: number; figures: readonly string[] }) {
    this.#names = names;
    const lowHalves: number[] = [];
    let cells = 0;
    for (const name of figures) {
      cells += AMOUNTS.has(name) ? 2 : 1;
      if (AMOUNTS.has(name)) lowHalves.push(cells - 1);
    }
    this.#lowHalves = lowHalves;
    this.#cells = cells;
  }

  /** Adds rows. */
  add(rows: readonly (readonly Value[])[]): void {
    const names = this.#names;
    for (const row of rows) {
      const cells = this.#cellsOf(row);
      const length = row.length - names;
      for (let cell = 0; cell < length; cell++) cells[cell] = (cells[cell] ?? 0) + (row[names + cell] as number);
      for (const low of this.#lowHalves) carry(cells, low);
    }
  }

  /** All sums, in the order of their first rows. */
  *list(): Generator<{ names: readonly Value[]; figures: RowFigures }> {
    for (const { names, cells } of this.#sums) yield { names, figures: toFigures(cells) };
  }

  #cellsOf(row: readonly Value[]): number[] {
    let node = this.#tree;
    const last = this.#names - 1;
    for (let name = 0; name < last; name++) {
      const value = row[name] as Value;
      let next = node.get(value) as typeof node | undefined;
      if (next === undefined) node.set(value, next = new Map());
      node = next;
    }
    const value = row[last] as Value;
    let cells = node.get(value) as number[] | undefined;
    if (cells === undefined) {
      cells = new Array<number>(this.#cells).fill(0);
      node.set(value, cells);
      this.#sums.push({ names: row.slice(0, this.#names), cells });
    }
    return cells;
  }
}

/** Keeps the lower half of an amount exact. */
function carry(cells: number[], low: number): void {
  const value = cells[low] ?? 0;
  if (value < TWO_32) return;
  const high = Math.floor(value / TWO_32);
  cells[low] = value - high * TWO_32;
  cells[low - 1] = (cells[low - 1] ?? 0) + high;
}

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
