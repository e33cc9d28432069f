/** Reads the blocks that may have entries of a search, those with the highest bounds first. */
import type { DatabaseSync } from "node:sqlite";
import type { KeptEntry } from "../ledger.ts";
import {
  type BoundedBlock,
  type EntrySearch,
  FEW_BLOCKS,
  mayHaveBetter,
  ORDER_COLUMNS,
  orderValue,
} from "../search.ts";
import { BLOCK } from "../sums.ts";
import { SELECTED_ENTRY } from "./ledger_rows.ts";
import { candidateBlocks, conditionOfSearch, daysOfNames, narrowToDays } from "../search_sql.ts";
import { DIALECT } from "./dialect.ts";
import { prepareSumsHead } from "./sums.ts";

/** Blocks whose bounds are read at a time. */
const BLOCKS_PER_READ = 512;

/** A value that is passed to SQLite. */
type Value = string | number | bigint;

/** The blocks that may have entries of a search. */
export interface SearchedBlocks {
  /** Returns whether there are at most `FEW_BLOCKS` such blocks. */
  areFew: () => boolean;
  /**
   * Yields the rows of the search, block by block, until no other block can have entries of the page.
   * @param found returns the page as it is so far
   */
  read: (found: () => readonly KeptEntry[]) => Generator<unknown[]>;
}

/** Opens the blocks of a search. */
export function openBlocks(db: DatabaseSync, search: EntrySearch): SearchedBlocks {
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
