/**
 * Searches for entries in the SQLite file, in slices: each reads a few thousand rows of an index, or a block of entries.
 */
import type { DatabaseSync } from "node:sqlite";
import { openSheetRows, SELECTED_ENTRY, toEntries } from "./ledger_rows.ts";
import type { KeptEntry, PriceSheet } from "../ledger.ts";
import {
  compareEntries,
  type EntryOrder,
  type EntrySearch,
  mergeFound,
  ORDER_COLUMNS,
  orderValue,
  readsBlocks,
} from "../search.ts";
import { conditionsOf, type SqlText } from "../search_sql.ts";
import { DIALECT, indexOf } from "./dialect.ts";
import { openBlocks } from "./search_blocks.ts";

/** Index rows read per slice: a few milliseconds of work. */
const ROWS_AT_ONCE = 2_000;

/** A search that reads some rows per slice. */
export type SearchWork = (search: EntrySearch) => Generator<void, KeptEntry[]>;

/** Prepares searches of a migrated database. */
export function prepareSearch(db: DatabaseSync): SearchWork {
  const sheets = openSheetRows(db);
  return function* (search) {
    const sheetOf = sheets.reader();
    const reads = readsBlocks(search);
    if (reads === false) return yield* searchIndex(db, search, sheetOf);
    const blocks = openBlocks(db, { search, conditions: conditionsOf(search, DIALECT) });
    if (reads === "few" && !blocks.areFew()) return yield* searchIndex(db, search, sheetOf);
    let found: KeptEntry[] = [];
    for (const rows of blocks.read(() => found)) {
      found = mergeFound(found, toEntries(rows, sheetOf), search);
      yield;
    }
    return found;
  };
}

function* searchIndex(
  db: DatabaseSync,
  search: EntrySearch,
  sheetOf: (version: number) => PriceSheet,
): Generator<void, KeptEntry[]> {
  const { order, after, limit, since, until } = search;
  const found = new RowRange(db, search);
  let entries: KeptEntry[] = [];
  const first = order === "time" && after !== undefined ? after : { value: BigInt(until), seq: 0 };
  let cursor: readonly [at: number, seq: number] = [Number(first.value), first.seq];
  for (;;) {
    const end = found.end(cursor, since);
    const remaining = order === "time" ? limit - entries.length : limit;
    const rows = found.rows({ cursor, end: end ?? [since, 0], above: entries[limit - 1] }, remaining);
    entries.push(...toEntries(rows, sheetOf));
    if (order !== "time") {
      entries = entries.sort((one, other) => compareEntries(one, other, order)).slice(0, limit);
    }
    if (end === undefined || order === "time" && entries.length >= limit) return entries;
    cursor = end;
    yield;
  }
}

/** The rows of one search, range by range along the most selective index. */
class RowRange {
  readonly #end: ReturnType<DatabaseSync["prepare"]>;
  readonly #rows: ReturnType<DatabaseSync["prepare"]>;
  readonly #driving: SqlText;
  readonly #values: (string | number | bigint)[];
  readonly #order: EntryOrder;

  constructor(db: DatabaseSync, search: EntrySearch) {
    const { index, driving } = indexOf(search);
    const conditions = conditionsOf(search, DIALECT);
    const column = ORDER_COLUMNS[search.order];
    if (search.order !== "time" && search.after !== undefined) {
      conditions.push([`(${column}, seq) < (?, ?)`, search.after.value, search.after.seq]);
    }
    const from = `FROM entries INDEXED BY ${index} WHERE ${driving[0]}`;
    this.#driving = driving;
    this.#order = search.order;
    this.#values = conditions.flatMap(([, ...values]) => values);
    this.#end = db.prepare(
      `SELECT at, seq ${from} AND (at, seq) < (?, ?) AND at >= ?
       ORDER BY at DESC, seq DESC LIMIT 1 OFFSET ${ROWS_AT_ONCE - 1}`,
    );
    this.#rows = db.prepare(
      `SELECT ${SELECTED_ENTRY} ${from} AND (at, seq) < (?, ?) AND (at, seq) >= (?, ?)
       ${conditions.map(([text]) => `AND ${text}`).join(" ")}
       ${search.order === "time" ? "" : `AND (entries.${column}, seq) > (?, ?)`}
       ORDER BY entries.${column} DESC, seq DESC LIMIT ?`,
    );
  }

  /** The last position of a range; `undefined` for the last range. */
  end(cursor: readonly [number, number], since: number): readonly [number, number] | undefined {
    const [, ...values] = this.#driving;
    const row = this.#end.get(...values, ...cursor, since);
    return row === undefined ? undefined : [Number(row.at), Number(row.seq)];
  }

  /** The rows from one position down to another, in the order of the search only those above an entry. */
  rows({ cursor, end, above }: {
    cursor: readonly [number, number];
    end: readonly [number, number];
    above: KeptEntry | undefined;
  }, limit: number): unknown[] {
    const [, ...values] = this.#driving;
    const floor = this.#order === "time"
      ? []
      : above === undefined
      ? [-1, 0]
      : [orderValue(above, this.#order), above.seq];
    return this.#rows.all(...values, ...cursor, ...end, ...this.#values, ...floor, limit);
  }
}
