/** Searches for entries in the database, each by one statement. */
import type { KeptEntry } from "../ledger.ts";
import { compareEntries, type EntryFilter, type EntrySearch, FAILED_SQL, ORDER_COLUMNS } from "../search.ts";
import type { Sql } from "./client.ts";
import { readPage } from "./ledger_rows.ts";

type Condition = ReturnType<Sql>;

/** Finds the first entries of an order. */
export async function searchEntries(sql: Sql, search: EntrySearch): Promise<KeptEntry[]> {
  const { order, after, limit } = search;
  const column = ORDER_COLUMNS[order];
  const conditions = conditionsOf(sql, search);
  if (after !== undefined) {
    conditions.push(
      sql`(${sql(`entries.${column}`)}, seq) < (${after.value.toString()}::bigint, ${after.seq}::bigint)`,
    );
  }
  const condition = conditions.reduce((all, next) => sql`${all} AND ${next}`);
  const entries = await readPage(sql, {
    condition,
    order: `entries.${column} DESC, entries.seq DESC`,
    pageOrder: "seq",
    limit,
  });
  return entries.sort((one, other) => compareEntries(one, other, order));
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
    // The index of failures serves both filters.
    failed === undefined && reason === undefined ? undefined : sql`${sql.unsafe(FAILED_SQL)}`,
    reason === undefined ? undefined : sql`reason = ${reason}`,
    user === undefined ? undefined : sql`end_user = ${user}`,
    tag === undefined ? undefined : sql`strpos(tags, ${`,${tag},`}) > 0`,
    minCost === undefined ? undefined : sql`entries.cost >= ${minCost.toString()}::bigint`,
    minMs === undefined ? undefined : sql`total_ms >= ${minMs}`,
  ];
  return all.filter((condition) => condition !== undefined);
}
