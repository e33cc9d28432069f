/**
 * Searches for entries in a SQLite database, with pauses. Each step reads a few thousand rows of an index, or a block
 * of entries.
 */
import type { DatabaseSync } from "node:sqlite";
import { openSheetRows, SELECTED_ENTRY, toEntries } from "./ledger_rows.ts";
import type { KeptEntry, PriceSheet } from "../ledger.ts";
import {
  type BoundedBlock,
  compareEntries,
  type EntryOrder,
  type EntrySearch,
  FEW_BLOCKS,
  mayHaveBetter,
  mergeEntries,
  ORDER_COLUMNS,
  orderValue,
  readsBlocks,
} from "../search.ts";
import {
  candidateBlocks,
  conditionOfSearch,
  conditionsOf,
  daysOfNames,
  narrowToDays,
  type SqlText,
} from "../search_sql.ts";
import { DIALECT, entryIndexFor } from "./dialect.ts";
import { BLOCK } from "../sums.ts";
import { prepareSumsHead } from "./sums.ts";

/** Rows of an index that a step reads: a few milliseconds of work. */
const ROWS_PER_STEP = 2_000;

/** Runs a search with pauses. */
export type SearchWork = (search: EntrySearch) => Generator<void, KeptEntry[]>;

/** Prepares searches of a migrated database. */
export function prepareSearch(db: DatabaseSync): SearchWork {
  const sheets = openSheetRows(db);
  return function* (search) {
    const sheetOf = sheets.reader();
    const blockUse = readsBlocks(search);
    if (blockUse === false) return yield* searchIndex(db, search, sheetOf);
    const blocks = openBlocks(db, search);
    if (blockUse === "few" && !blocks.areFew()) return yield* searchIndex(db, search, sheetOf);
    let found: KeptEntry[] = [];
    for (const rows of blocks.read(() => found)) {
      found = mergeEntries(found, toEntries(rows, sheetOf), search);
      yield;
    }
    return found;
  };
}

/** Searches with an index by time, from the latest entry to the earliest. */
function* searchIndex(
  db: DatabaseSync,
  search: EntrySearch,
  sheetOf: (version: number) => PriceSheet,
): Generator<void, KeptEntry[]> {
  const { order, after, limit, since, until } = search;
  const ranges = new IndexRanges(db, search);
  let entries: KeptEntry[] = [];
  const latest = { value: BigInt(until), seq: 0 };
  const first = order === "time" && after !== undefined && after.value < latest.value ? after : latest;
  let cursor: readonly [at: number, seq: number] = [Number(first.value), first.seq];
  for (;;) {
    const end = ranges.end(cursor, since);
    const left = order === "time" ? limit - entries.length : limit;
    const rows = ranges.rows({ cursor, end: end ?? [since, 0], above: entries[limit - 1] }, left);
    entries.push(...toEntries(rows, sheetOf));
    if (order !== "time") {
      entries = entries.sort((one, other) => compareEntries(one, other, order)).slice(0, limit);
    }
    if (end === undefined || order === "time" && entries.length >= limit) return entries;
    cursor = end;
    yield;
  }
}

/** The rows of a search in ranges of the most selective index. */
class IndexRanges {
  readonly #end: ReturnType<DatabaseSync["prepare"]>;
  readonly #rows: ReturnType<DatabaseSync["prepare"]>;
  readonly #indexCondition: SqlText;
  readonly #values: (string | number | bigint)[];
  readonly #order: EntryOrder;

  constructor(db: DatabaseSync, search: EntrySearch) {
    const { index, condition: indexCondition } = entryIndexFor(search);
    const conditions = conditionsOf(search, DIALECT);
    const column = ORDER_COLUMNS[search.order];
    if (search.order !== "time" && search.after !== undefined) {
      conditions.push([`(${column}, seq) < (?, ?)`, search.after.value, search.after.seq]);
    }
    const from = `FROM entries INDEXED BY ${index} WHERE ${indexCondition[0]}`;
    this.#indexCondition = indexCondition;
    this.#order = search.order;
    this.#values = conditions.flatMap(([, ...values]) => values);
    this.#end = db.prepare(
      `SELECT at, seq ${from} AND (at, seq) < (?, ?) AND at >= ?
       ORDER BY at DESC, seq DESC LIMIT 1 OFFSET ${ROWS_PER_STEP - 1}`,
    );
    this.#rows = db.prepare(
      `SELECT ${SELECTED_ENTRY} ${from} AND (at, seq) < (?, ?) AND (at, seq) >= (?, ?)
       ${conditions.map(([text]) => `AND ${text}`).join(" ")}
       ${search.order === "time" ? "" : `AND (entries.${column}, seq) > (?, ?)`}
       ORDER BY entries.${column} DESC, seq DESC LIMIT ?`,
    );
  }

  /** Returns the last position of the range after a cursor; `undefined` if it is the last range. */
  end(cursor: readonly [number, number], since: number): readonly [number, number] | undefined {
    const [, ...values] = this.#indexCondition;
    const row = this.#end.get(...values, ...cursor, since);
    return row === undefined ? undefined : [Number(row.at), Number(row.seq)];
  }

  /**
   * Reads the rows between two positions. In an order other than time, only those that come before the entry `above`.
   */
  rows({ cursor, end, above }: {
    cursor: readonly [number, number];
    end: readonly [number, number];
    above: KeptEntry | undefined;
  }, limit: number): unknown[] {
    const [, ...values] = this.#indexCondition;
    const floor = this.#order === "time"
      ? []
      : above === undefined
      ? [-1, 0]
      : [orderValue(above, this.#order), above.seq];
    return this.#rows.all(...values, ...cursor, ...end, ...this.#values, ...floor, limit);
  }
}

/** Blocks whose bounds are read at a time. */
const BLOCKS_PER_READ = 512;

type Value = string | number | bigint;

/** The blocks that may have entries of a search. */
interface SearchedBlocks {
  /** Returns whether there are at most `FEW_BLOCKS` such blocks. */
  areFew: () => boolean;
  /**
   * Yields the rows of the search, block by block, until no other block can have entries of the page.
   * @param found returns the page as it is so far
   */
  read: (found: () => readonly KeptEntry[]) => Generator<unknown[]>;
}

function openBlocks(db: DatabaseSync, search: EntrySearch): SearchedBlocks {
  const { order, limit } = search;
  const [candidates, ...candidateValues] = candidateBlocks(narrowed(db, search), DIALECT);
  const column = ORDER_COLUMNS[order];
  const [condition, ...values] = conditionOfSearch(search, DIALECT);

  /** Yields the blocks, those with the highest bounds first. */
  function* blocks(): Generator<BoundedBlock> {
    const statement = db.prepare(
      `${candidates} AND (bound, block) < (?, ?) ORDER BY bound DESC, block DESC LIMIT ${BLOCKS_PER_READ}`,
    );
    statement.setReadBigInts(true);
    let cursor: Value[] = [MAX_BOUND, Number.MAX_SAFE_INTEGER];
    for (;;) {
      const rows = statement.all(...candidateValues, ...cursor);
      for (const row of rows) yield { block: Number(row.block), bound: row.bound as bigint };
      const last = rows.at(-1);
      if (last === undefined || rows.length < BLOCKS_PER_READ) return;
      cursor = [last.bound as bigint, last.block as bigint];
    }
  }

  return {
    areFew() {
      const nth = db.prepare(`${candidates} LIMIT 1 OFFSET ${FEW_BLOCKS}`);
      return nth.get(...candidateValues) === undefined;
    },
    *read(found) {
      const rows = db.prepare(
        `SELECT ${SELECTED_ENTRY} FROM entries NOT INDEXED WHERE seq > ? AND seq <= ? AND ${condition}
         AND (entries.${column}, seq) > (?, ?)
         ORDER BY entries.${column} DESC, seq DESC LIMIT ?`,
      );
      const rowsOf = (from: number, to: number) => {
        const worst = found()[limit - 1];
        const floor: Value[] = worst === undefined ? [-1, 0] : [orderValue(worst, order), worst.seq];
        return rows.all(from, to, ...values, ...floor, limit);
      };
      // First the entries that are in no block yet: few, unless many sums are still to be made.
      const { seq } = prepareSumsHead(db)();
      const last = Number(db.prepare("SELECT max(seq) AS seq FROM entries").get()?.seq ?? 0);
      for (let to = last; to > seq; to -= BLOCK) yield rowsOf(Math.max(seq, to - BLOCK), to);
      for (const bounded of blocks()) {
        if (!mayHaveBetter(bounded, found()[limit - 1], order)) return;
        const { block } = bounded;
        yield rowsOf(block * BLOCK, Math.min(seq, (block + 1) * BLOCK));
      }
    },
  };
}

/** The largest integer of SQLite, which is above every bound. */
const MAX_BOUND = 2n ** 63n - 1n;

/** Narrows the period of a search to the days on which all of its names occur together. */
function narrowed(db: DatabaseSync, search: EntrySearch): EntrySearch {
  const [text, ...values] = daysOfNames(search, DIALECT) ?? [];
  return text === undefined ? search : narrowToDays(search, db.prepare(text).get(...values));
}
