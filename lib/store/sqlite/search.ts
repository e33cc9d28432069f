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
  type EntrySearch,
  FEW_BLOCKS,
  mayHaveBetter,
  mergeEntries,
  ORDER_COLUMNS,
  orderValue,
  readsBlocks,
} from "../search.ts";
import { candidateBlocks, conditionOfSearch, conditionsOf, daysOfNames, narrowToDays } from "../search_sql.ts";
import { DIALECT, entryIndexFor } from "./dialect.ts";
import { BLOCK } from "../sums.ts";
import { prepareSumsHead } from "./sums.ts";

/** Rows of an index that a step reads: a few milliseconds of work. */
const ROWS_PER_STEP = 2_000;

/** Prepares searches of a migrated database, which pause. */
export function prepareSearch(db: DatabaseSync): (search: EntrySearch) => Generator<void, KeptEntry[]> {
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
  const isByTime = order === "time";
  const { index, condition: [indexed, ...indexedValues] } = entryIndexFor(search);
  const conditions = conditionsOf(search, DIALECT);
  const column = ORDER_COLUMNS[order];
  if (!isByTime && after !== undefined) conditions.push([`(${column}, seq) < (?, ?)`, after.value, after.seq]);
  const values = conditions.flatMap(([, ...values]) => values);
  const from = `FROM entries INDEXED BY ${index} WHERE ${indexed}`;
  const rangeEnd = db.prepare(
    `SELECT at, seq ${from} AND (at, seq) < (?, ?) AND at >= ?
     ORDER BY at DESC, seq DESC LIMIT 1 OFFSET ${ROWS_PER_STEP - 1}`,
  );
  const rowsOfRange = db.prepare(
    `SELECT ${SELECTED_ENTRY} ${from} AND (at, seq) < (?, ?) AND (at, seq) >= (?, ?)
     ${conditions.map(([text]) => `AND ${text}`).join(" ")}
     ${isByTime ? "" : `AND (entries.${column}, seq) > (?, ?)`}
     ORDER BY entries.${column} DESC, seq DESC LIMIT ?`,
  );
  let entries: KeptEntry[] = [];
  let cursor = isByTime && after !== undefined && after.value < until ? [Number(after.value), after.seq] : [until, 0];
  for (;;) {
    const row = rangeEnd.get(...indexedValues, ...cursor, since);
    const end = row === undefined ? [since, 0] : [Number(row.at), Number(row.seq)];
    const floor = isByTime ? [] : floorOf(entries, search);
    const left = isByTime ? limit - entries.length : limit;
    const rows = rowsOfRange.all(...indexedValues, ...cursor, ...end, ...values, ...floor, left);
    entries.push(...toEntries(rows, sheetOf));
    if (!isByTime) entries = entries.sort((one, other) => compareEntries(one, other, order)).slice(0, limit);
    if (row === undefined || isByTime && entries.length >= limit) return entries;
    cursor = end;
    yield;
  }
}

/** Returns the value and seq that entries must exceed to come before the last entry of a page; -1 if it is not full. */
function floorOf(page: readonly KeptEntry[], { limit, order }: EntrySearch): Value[] {
  const last = page[limit - 1];
  return last === undefined ? [-1, 0] : [orderValue(last, order), last.seq];
}

/** Blocks whose bounds are read at a time. */
const BLOCKS_PER_READ = 512;

type Value = number | bigint;

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
  const [candidates, ...candidateValues] = candidateBlocks(narrowedSearch(db, search), DIALECT);
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
      const rowsOf = (from: number, to: number) => rows.all(from, to, ...values, ...floorOf(found(), search), limit);
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
function narrowedSearch(db: DatabaseSync, search: EntrySearch): EntrySearch {
  const [text, ...values] = daysOfNames(search, DIALECT) ?? [];
  return text === undefined ? search : narrowToDays(search, db.prepare(text).get(...values));
}
