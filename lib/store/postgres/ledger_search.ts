/** Searches for entries in the database: by an index in one statement, or by blocks of entries. */
import type { KeptEntry } from "../ledger.ts";
import {
  type BoundedBlock,
  compareEntries,
  type EntrySearch,
  FEW_BLOCKS,
  mayBeat,
  mergeFound,
  namesOfDays,
  narrowPeriod,
  ORDER_COLUMNS,
  readsBlocks,
} from "../search.ts";
import { allOf, candidateBlocks, conditionsOf } from "../search_sql.ts";
import { BLOCK, SHORT_TAIL } from "../sums.ts";
import { DIALECT, fragmentOf } from "./fragments.ts";
import type { Sql } from "./client.ts";
import { readPage } from "./ledger_rows.ts";

type Condition = ReturnType<Sql>;

/** Blocks read by one statement: first, and at most. */
const FIRST_BLOCKS = 1;
const MAX_BLOCKS = 8;

/** Finds the first entries of an order. */
export async function searchEntries(sql: Sql, search: EntrySearch): Promise<KeptEntry[]> {
  const [ends] = await sql<{ head: bigint; last: bigint }[]>`
    SELECT (SELECT seq FROM sums_head) AS head, (SELECT seq FROM ledger_head) AS last`;
  const [head, last] = [Number(ends?.head), Number(ends?.last)];
  const isBehind = last - head > SHORT_TAIL;
  const reads = !isBehind && readsBlocks(search);
  if (reads === false || reads === "few" && !await areFew(sql, search)) return await readFound(sql, search);
  return await searchBlocks(sql, search, { head, last });
}

/** Reads the entries without blocks, then the blocks that may have entries of the page. */
async function searchBlocks(
  sql: Sql,
  search: EntrySearch,
  { head, last }: { head: number; last: number },
): Promise<KeptEntry[]> {
  const { order, limit } = search;
  let found = await readFound(sql, search, [{ from: head, to: last }]);
  const blocks = await readBlocks(sql, search);
  for (let at = 0, count = FIRST_BLOCKS; at < blocks.length; at += count, count = Math.min(2 * count, MAX_BLOCKS)) {
    const page = blocks.slice(at, at + count).filter((block) => mayBeat(block, found[limit - 1], order));
    // They are in the order of their bounds.
    if (page.length === 0) break;
    const ranges = page.map(({ block }) => ({ from: block * BLOCK, to: Math.min(head, (block + 1) * BLOCK) }));
    found = mergeFound(found, await readFound(sql, search, ranges), search);
  }
  return found;
}

/** Numbers of entries: `from` is exclusive, `to` inclusive. */
interface Range {
  from: number;
  to: number;
}

/** Reads the first entries of the search, of some ranges. A subquery with an offset is planned by itself, by number. */
async function readFound(sql: Sql, search: EntrySearch, ranges?: readonly Range[]): Promise<KeptEntry[]> {
  const { order, after, limit } = search;
  const column = ORDER_COLUMNS[order];
  const condition = fragmentOf(
    sql,
    allOf([
      ["at >= ? AND at < ?", search.since, search.until],
      ...conditionsOf(search, DIALECT),
      ...(after === undefined ? [] : [[`(entries.${column}, seq) < (?, ?)`, after.value, after.seq] as const]),
    ]),
  );
  const parts = ranges?.map(({ from, to }): Condition =>
    sql`SELECT * FROM entries WHERE seq > ${from} AND seq <= ${to}`
  )
    .reduce((all, next) => sql`${all} UNION ALL ${next}`);
  const entries = await readPage(sql, {
    ...(parts !== undefined && { source: sql`(SELECT * FROM (${parts}) ranges OFFSET 0) entries` }),
    condition,
    order: `entries.${column} DESC, entries.seq DESC`,
    pageOrder: "seq",
    limit,
  });
  return entries.sort((one, other) => compareEntries(one, other, order));
}

/** The blocks that may have entries of a search, in the order of their bounds. */
async function readBlocks(sql: Sql, search: EntrySearch): Promise<BoundedBlock[]> {
  const blocks = candidateBlocks(await narrowed(sql, search), DIALECT);
  const rows = await sql<{ block: bigint; bound: bigint }[]>`
    ${fragmentOf(sql, blocks)} ORDER BY bound DESC, block DESC`;
  return rows.map(({ block, bound }) => ({ block: Number(block), bound }));
}

async function areFew(sql: Sql, search: EntrySearch): Promise<boolean> {
  const blocks = candidateBlocks(await narrowed(sql, search), DIALECT);
  return (await sql`${fragmentOf(sql, blocks)} LIMIT 1 OFFSET ${FEW_BLOCKS}`).length === 0;
}

/** The period of a search, narrowed to days on which all of its names come together. */
async function narrowed(sql: Sql, search: EntrySearch): Promise<EntrySearch> {
  const names = namesOfDays(search);
  if (names.length === 0) return search;
  const test = fragmentOf(sql, allOf(names.map(([column, value]) => [`${column} = ?`, value])));
  const [row] = await sql<{ first: bigint | null; last: bigint | null; first_day: bigint }[]>`
    SELECT min(day) AS first, max(day) AS last, (SELECT first_day FROM sums_head) AS first_day
    FROM upstream_days WHERE ${test}`;
  const [first, last] = [row?.first, row?.last].map((day) => typeof day === "bigint" ? Number(day) : null);
  const days = { first: first ?? null, last: last ?? null, firstDay: Number(row?.first_day) };
  return { ...search, ...narrowPeriod(search, days) };
}
