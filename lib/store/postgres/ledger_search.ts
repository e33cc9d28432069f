/** Searches for entries in the database: by an index in one statement, or by blocks of entries. */
import type { KeptEntry } from "../ledger.ts";
import {
  type BlockName,
  blockNames,
  BOUND_COLUMNS,
  type BoundedBlock,
  compareEntries,
  type EntryFilter,
  type EntrySearch,
  FAILED_SQL,
  FEW_BLOCKS,
  mayBeat,
  mergeFound,
  namesOfDays,
  narrowPeriod,
  ORDER_COLUMNS,
  readsBlocks,
} from "../search.ts";
import { BLOCK, SHORT_TAIL } from "../sums.ts";
import type { Sql } from "./client.ts";
import { readPage } from "./ledger_rows.ts";

type Condition = ReturnType<Sql>;

/** Blocks read by one statement: first, and at most. */
const FIRST_BLOCKS = 1;
const MOST_BLOCKS = 8;

/** Finds the first entries of an order. */
export async function searchEntries(sql: Sql, search: EntrySearch): Promise<KeptEntry[]> {
  const [place] = await sql<{ head: bigint; last: bigint }[]>`
    SELECT (SELECT seq FROM sums_head) AS head, (SELECT seq FROM ledger_head) AS last`;
  const [head, last] = [Number(place?.head), Number(place?.last)];
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
  for (let at = 0, count = FIRST_BLOCKS; at < blocks.length; at += count, count = Math.min(2 * count, MOST_BLOCKS)) {
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
  const conditions = conditionsOf(sql, search);
  if (after !== undefined) {
    conditions.push(
      sql`(${sql(`entries.${column}`)}, seq) < (${after.value.toString()}::bigint, ${after.seq}::bigint)`,
    );
  }
  const condition = conditions.reduce((all, next) => sql`${all} AND ${next}`);
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
  const period = await narrowed(sql, search);
  const rows = await sql<{ block: bigint; bound: bigint }[]>`
    ${candidatesOf(sql, search, period)} ORDER BY bound DESC, block DESC`;
  return rows.map(({ block, bound }) => ({ block: Number(block), bound }));
}

async function areFew(sql: Sql, search: EntrySearch): Promise<boolean> {
  const period = await narrowed(sql, search);
  return (await sql`${candidatesOf(sql, search, period)} LIMIT 1 OFFSET ${FEW_BLOCKS}`).length === 0;
}

function candidatesOf(sql: Sql, search: EntrySearch, { since, until }: Period): Condition {
  const { order, minCost = 0n, minMs = 0 } = search;
  const bound = sql(BOUND_COLUMNS[order]);
  const names = blockNames(search);
  const blocks = names.map((name): Condition =>
    sql`
      SELECT block, max(${bound}) AS bound FROM entry_blocks
      WHERE kind = ${name.kind} AND ${testOf(sql, name)}
        AND last_at >= ${since} AND first_at < ${until} AND most_cost >= ${minCost.toString()}::bigint AND most_ms >= ${minMs}
      GROUP BY block`
  );
  return sql`
    SELECT block, min(bound) AS bound FROM (${blocks.reduce((all, next) => sql`${all} UNION ALL ${next}`)}) named
    GROUP BY block HAVING count(*) = ${names.length}`;
}

function testOf(sql: Sql, { name, status, parts = [], oneOf = [] }: BlockName): Condition {
  const tests: (Condition | undefined)[] = [
    name === undefined ? sql`true` : sql`name = ${name}`,
    // The name begins with the number.
    status === undefined
      ? undefined
      : sql`split_part(name, ${"\n"}, 1)::integer BETWEEN ${status.from} AND ${status.to}`,
    ...parts.map((part): Condition => sql`strpos(name, ${part}) > 0`),
    oneOf.length === 0
      ? undefined
      : sql`(${
        oneOf.map((part): Condition => sql`strpos(name, ${part}) > 0`).reduce((all, next) => sql`${all} OR ${next}`)
      })`,
  ];
  return tests.filter((test) => test !== undefined).reduce((all, next) => sql`${all} AND ${next}`);
}

type Period = Pick<EntrySearch, "since" | "until">;

/** The period of a search, narrowed to days on which all of its names come together. */
async function narrowed(sql: Sql, search: EntrySearch): Promise<Period> {
  const names = namesOfDays(search);
  if (names.length === 0) return search;
  const test = names.map(([column, value]): Condition => sql`${sql(column)} = ${value}`)
    .reduce((all, next) => sql`${all} AND ${next}`);
  const [row] = await sql<{ first: bigint | null; last: bigint | null; first_day: bigint }[]>`
    SELECT min(day) AS first, max(day) AS last, (SELECT first_day FROM sums_head) AS first_day
    FROM upstream_days WHERE ${test}`;
  const [first, last] = [row?.first, row?.last].map((day) => typeof day === "bigint" ? Number(day) : null);
  return narrowPeriod(search, { first: first ?? null, last: last ?? null, firstDay: Number(row?.first_day) });
}

function conditionsOf(sql: Sql, filter: EntryFilter): Condition[] {
  const { since, until, keyId, group, model, upstream, endpoint, status, failed, reason, user, tag, minCost, minMs } =
    filter;
  const all: (Condition | undefined)[] = [
    sql`at >= ${since} AND at < ${until}`,
    keyId === undefined ? undefined : sql`key_id = ${keyId}`,
    group === undefined ? undefined : sql`group_name = ${group}`,
    model === undefined ? undefined : sql`model = ${model}`,
    upstream === undefined ? undefined : sql`upstream = ${upstream}`,
    endpoint === undefined ? undefined : sql`endpoint = ${endpoint}`,
    status === undefined ? undefined : sql`status BETWEEN ${status.from} AND ${status.to}`,
    failed === undefined ? undefined : sql`${sql.unsafe(FAILED_SQL)}`,
    reason === undefined ? undefined : sql`reason = ${reason}`,
    user === undefined ? undefined : sql`end_user = ${user}`,
    tag === undefined ? undefined : sql`strpos(tags, ${`,${tag},`}) > 0`,
    minCost === undefined ? undefined : sql`entries.cost >= ${minCost.toString()}::bigint`,
    minMs === undefined ? undefined : sql`total_ms >= ${minMs}`,
  ];
  return all.filter((condition) => condition !== undefined);
}
