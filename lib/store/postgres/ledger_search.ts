/**
 * Searches for entries in the database: with an index in one statement, or by reading the blocks that may have some.
 */
import type { KeptEntry } from "../ledger.ts";
import {
  type BoundedBlock,
  compareEntries,
  type EntrySearch,
  FEW_BLOCKS,
  mayHaveBetter,
  mergeEntries,
  ORDER_COLUMNS,
  readsBlocks,
} from "../search.ts";
import { candidateBlocks, conditionOfSearch, daysOfNames, narrowToDays } from "../search_sql.ts";
import { BLOCK, SHORT_TAIL } from "../sums.ts";
import { DIALECT, fragmentOf } from "./fragments.ts";
import type { Sql } from "./client.ts";
import { readPage } from "./ledger_rows.ts";

type Condition = ReturnType<Sql>;

/**
 * Blocks that a statement reads: the first one, and later ones at most, as each reads twice as many as the previous.
 */
const FIRST_BLOCKS = 1;
const MAX_BLOCKS = 8;

/** Implements `LedgerStore.search`. */
export async function searchEntries(sql: Sql, search: EntrySearch): Promise<KeptEntry[]> {
  const [ends] = await sql<{ head: bigint; last: bigint }[]>`
    SELECT (SELECT seq FROM sums_head) AS head, (SELECT seq FROM ledger_head) AS last`;
  const [head, last] = [Number(ends?.head), Number(ends?.last)];
  const areSumsBehind = last - head > SHORT_TAIL;
  const blockUse = !areSumsBehind && readsBlocks(search);
  if (blockUse === false || blockUse === "few" && !await areFew(sql, search)) return await readMatching(sql, search);
  return await searchBlocks(sql, search, { head, last });
}

/** Reads the entries that are in no block yet, then the blocks that may have entries of the page. */
async function searchBlocks(
  sql: Sql,
  search: EntrySearch,
  { head, last }: { head: number; last: number },
): Promise<KeptEntry[]> {
  const { order, limit } = search;
  let found = await readMatching(sql, search, [{ from: head, to: last }]);
  const blocks = await readBlocks(sql, search);
  for (let at = 0, count = FIRST_BLOCKS; at < blocks.length; at += count, count = Math.min(2 * count, MAX_BLOCKS)) {
    const page = blocks.slice(at, at + count).filter((block) => mayHaveBetter(block, found[limit - 1], order));
    // The blocks are in order of their bounds, so no later block may have any either.
    if (page.length === 0) break;
    const ranges = page.map(({ block }) => ({ from: block * BLOCK, to: Math.min(head, (block + 1) * BLOCK) }));
    found = mergeEntries(found, await readMatching(sql, search, ranges), search);
  }
  return found;
}

/** A range of seqs: `from` is exclusive, `to` inclusive. */
interface SeqRange {
  from: number;
  to: number;
}

/**
 * Reads the first entries of a search, of the whole ledger or of some ranges. `OFFSET 0` makes Postgres plan the
 * subquery of the ranges by itself, so that it uses the index of seqs.
 */
async function readMatching(sql: Sql, search: EntrySearch, ranges?: readonly SeqRange[]): Promise<KeptEntry[]> {
  const { order, limit } = search;
  const condition = fragmentOf(sql, conditionOfSearch(search, DIALECT));
  const parts = ranges?.map(({ from, to }): Condition =>
    sql`SELECT * FROM entries WHERE seq > ${from} AND seq <= ${to}`
  )
    .reduce((union, next) => sql`${union} UNION ALL ${next}`);
  const entries = await readPage(sql, {
    ...(parts !== undefined && { source: sql`(SELECT * FROM (${parts}) ranges OFFSET 0) entries` }),
    condition,
    order: `entries.${ORDER_COLUMNS[order]} DESC, entries.seq DESC`,
    pageOrder: "seq",
    limit,
  });
  return entries.sort((one, other) => compareEntries(one, other, order));
}

/** Reads the blocks that may have entries of a search, the one with the highest bound first. */
async function readBlocks(sql: Sql, search: EntrySearch): Promise<BoundedBlock[]> {
  const blocks = candidateBlocks(await narrowed(sql, search), DIALECT);
  const rows = await sql<{ block: bigint; bound: bigint }[]>`
    ${fragmentOf(sql, blocks)} ORDER BY bound DESC, block DESC`;
  return rows.map(({ block, bound }) => ({ block: Number(block), bound }));
}

/** Returns whether few blocks may have entries of a search. */
async function areFew(sql: Sql, search: EntrySearch): Promise<boolean> {
  const blocks = candidateBlocks(await narrowed(sql, search), DIALECT);
  return (await sql`${fragmentOf(sql, blocks)} LIMIT 1 OFFSET ${FEW_BLOCKS}`).length === 0;
}

/** Narrows the period of a search to the days on which all of its names occur together. */
async function narrowed(sql: Sql, search: EntrySearch): Promise<EntrySearch> {
  const days = daysOfNames(search, DIALECT);
  return days === undefined ? search : narrowToDays(search, (await sql`${fragmentOf(sql, days)}`)[0]);
}
