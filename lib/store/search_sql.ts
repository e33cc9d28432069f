/** SQL of searches and reports for both databases, which differ in a few expressions. */
import type { UsageFilter } from "./ledger.ts";
import {
  type BlockName,
  blockNames,
  BOUND_COLUMNS,
  type EntryFilter,
  type EntrySearch,
  ORDER_COLUMNS,
} from "./search.ts";
import { DAY_MS, FAILED_SQL } from "./days.ts";

/** A condition or query with its values. The text has a `?` for each of them. */
export type SqlText = readonly [text: string, ...values: (string | number | bigint)[]];

/** The expressions that differ between the databases. */
export interface SqlDialect {
  /** Function that returns the position of a text in another text, or 0. */
  position: "instr" | "strpos";
  /** Expression for the status with which a name of the kind `problem` begins. */
  statusOfName: string;
}

/** Joins conditions with AND. */
export function allOf(conditions: readonly SqlText[]): SqlText {
  const texts = ["true", ...conditions.map(([text]) => text)];
  return [texts.join(" AND "), ...conditions.flatMap(([, ...values]) => values)];
}

/** Returns the conditions of a filter, without that of the period, for entries or for sums with the same columns. */
export function conditionsOf(
  filter: Omit<EntryFilter, "since" | "until"> | UsageFilter,
  { position }: SqlDialect,
): SqlText[] {
  const { keyId, group, model, user, tag, upstream, endpoint, status, failed, reason, minCost, minMs }: Partial<
    EntryFilter
  > = filter;
  const conditions: (SqlText | undefined)[] = [
    keyId === undefined ? undefined : ["key_id = ?", keyId],
    group === undefined ? undefined : ["group_name = ?", group],
    model === undefined ? undefined : ["model = ?", model],
    upstream === undefined ? undefined : ["upstream = ?", upstream],
    endpoint === undefined ? undefined : ["endpoint = ?", endpoint],
    status === undefined ? undefined : ["status BETWEEN ? AND ?", status.from, status.to],
    failed === undefined ? undefined : [FAILED_SQL],
    reason === undefined ? undefined : ["reason = ?", reason],
    user === undefined ? undefined : ["end_user = ?", user],
    tag === undefined ? undefined : [`${position}(tags, ?) > 0`, `,${tag},`],
    minCost === undefined ? undefined : ["entries.cost >= ?", minCost],
    minMs === undefined ? undefined : ["total_ms >= ?", minMs],
  ];
  return conditions.filter((condition) => condition !== undefined);
}

/** Returns the condition for the entries of a search after the previous page. */
export function conditionOfSearch(search: EntrySearch, dialect: SqlDialect): SqlText {
  const { order, after, since, until } = search;
  const conditions: SqlText[] = [["at >= ? AND at < ?", since, until], ...conditionsOf(search, dialect)];
  if (after !== undefined) {
    conditions.push([`(entries.${ORDER_COLUMNS[order]}, seq) < (?, ?)`, after.value, after.seq]);
  }
  return allOf(conditions);
}

/**
 * Returns the query for the days on which all names of a search occur together; undefined if it has fewer than two.
 * Blocks test names one by one: two names may be in the same block without an entry that has both.
 */
export function daysOfNames(
  { keyId, group, model, upstream }: EntryFilter,
  dialect: SqlDialect,
): SqlText | undefined {
  const names = conditionsOf({ keyId, group, model, upstream }, dialect);
  if (names.length < 2) return undefined;
  const [test, ...values] = allOf(names);
  return [
    `SELECT min(day) AS first, max(day) AS last, (SELECT first_day FROM sums_head) AS first_day FROM upstream_days
     WHERE ${test}`,
    ...values,
  ];
}

/**
 * Narrows the period of a search to the days that may have its entries: those with sums of its names, and those from
 * before the store had sums.
 * @param days the result of `daysOfNames`
 */
export function narrowToDays(
  search: EntrySearch,
  { first, last, first_day }: Partial<Record<string, unknown>> = {},
): EntrySearch {
  const { since, until } = search;
  const before = Number(first_day) * DAY_MS;
  return {
    ...search,
    since: since < before || first === null ? since : Math.max(since, Number(first) * DAY_MS),
    until: Math.min(until, Math.max(before, last === null ? 0 : (Number(last) + 1) * DAY_MS)),
  };
}

/**
 * Returns the query for the blocks that may have entries of a search, with their bounds. More conditions may follow it.
 */
export function candidateBlocks(search: EntrySearch, dialect: SqlDialect): SqlText {
  const { order, since, until, minCost = 0n, minMs = 0 } = search;
  const names = blockNames(search);
  const named = names.map((name): SqlText => {
    const [test, ...values] = allOf(testsOf(name, dialect));
    return [
      `SELECT block, max(${BOUND_COLUMNS[order]}) AS bound FROM entry_blocks
       WHERE kind = ? AND last_at >= ? AND first_at < ? AND most_cost >= ? AND most_ms >= ? AND ${test} GROUP BY block`,
      ...[name.kind, since, until, minCost, minMs],
      ...values,
    ];
  });
  return [
    `SELECT block, bound FROM (
       SELECT block, min(bound) AS bound FROM (${named.map(([text]) => text).join(" UNION ALL ")}) named
       GROUP BY block HAVING count(*) = ${names.length}
     ) blocks WHERE true`,
    ...named.flatMap(([, ...values]) => values),
  ];
}

/** Returns the conditions for the names of blocks. */
function testsOf({ name, status, parts = [], oneOf }: BlockName, { position, statusOfName }: SqlDialect): SqlText[] {
  const has = `${position}(name, ?) > 0`;
  return [
    ...(name === undefined ? [] : [["name = ?", name] as const]),
    ...(status === undefined ? [] : [[`${statusOfName} BETWEEN ? AND ?`, status.from, status.to] as const]),
    ...parts.map((part) => [has, part] as const),
    ...(oneOf === undefined ? [] : [[`(${oneOf.map(() => has).join(" OR ")})`, ...oneOf] as const]),
  ];
}
