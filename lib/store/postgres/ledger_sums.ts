/** The sums per day in the database, and the reports made from them. */
import { mapSliced, sortSliced } from "../../scheduler.ts";
import { byName, cutSpan, needsEntries, sumName, TIME_STEPS } from "../days.ts";
import { type CountRow, NAME_COLUMNS, toCounts } from "../entry_row.ts";
import type { BudgetClaim, DaySum, Spender, Spending, UsageBy, UsageQuery, UsageSum } from "../ledger.ts";
import type { Sql } from "./client.ts";

/** Sums of the database: texts where they may exceed 64 bits, else `bigint`. */
type FigureRow = Record<keyof CountRow | "cost" | "overrun", string | bigint>;

/** Reads the amounts of keys and groups in one statement, since an entry may turn a hold into a charge at any time. */
export async function readSpending(sql: Sql, spenders: readonly Spender[]): Promise<Spending[]> {
  const places = spenders.map(({ scope, id, since }, place) => ({ place, scope, id, since }));
  const rows = await sql<{ charged: string; held: string }[]>`
    SELECT ledger_charged(scope, id, since) AS charged, ledger_on_hold(scope, id, since) AS held
    FROM json_to_recordset(${JSON.stringify(places)}::text::json)
      AS spender (place integer, scope text, id text, since bigint)
    ORDER BY place`;
  return rows.map(({ charged, held }) => ({ charged: BigInt(charged), held: BigInt(held) }));
}

/** Reads the rest of a budget. */
export async function readLeft(sql: Sql, claim: BudgetClaim): Promise<bigint> {
  const [spending] = await readSpending(sql, [claim]);
  if (spending === undefined) throw new Error("Cannot tell what is left of a budget: the database returned nothing");
  return claim.budget - spending.charged - spending.held;
}

/** The sums per day since a day; with `enough`, as many whole days as needed for that many sums. */
export async function readDays(sql: Sql, since: number, enough: number): Promise<DaySum[]> {
  const place = Number.isSafeInteger(enough) ? enough - 1 : Number.MAX_SAFE_INTEGER;
  const rows = await sql<(FigureRow & { day: bigint; key_id: string; group_name: string; model: string })[]>`
    SELECT * FROM days
    WHERE day >= ${since} AND day <= coalesce(
      (SELECT day FROM days WHERE day >= ${since} ORDER BY day LIMIT 1 OFFSET ${place}), ${Number.MAX_SAFE_INTEGER})
    ORDER BY day, key_id, group_name, model`;
  return await mapSliced(rows, (row) => ({
    day: Number(row.day),
    keyId: row.key_id,
    group: row.group_name,
    model: row.model,
    ...toFigures(row),
  }));
}

/**
 * Sums over a period in one statement, which sees one snapshot. Whole days, and days with pruned entries, use the sums
 * per day; parts of days use entries, unless the part covers the whole day.
 */
export async function readUsage(sql: Sql, query: UsageQuery): Promise<UsageSum[]> {
  const { by, thenBy } = query;
  const rows = needsEntries(query) ? await sumEntries(sql, query) : await sumDays(sql, query);
  const sums = await mapSliced(rows, (row) => ({
    name: sumName(by, row.name),
    ...(thenBy !== undefined && { thenName: sumName(thenBy, row.then_name) }),
    ...toFigures(row),
  }));
  return await sortSliced(sums, byName);
}

/** A row of sums with its names. */
type SumRow = FigureRow & { name: string; then_name: string };

async function sumDays(sql: Sql, { since, until, by, thenBy = by, only = {} }: UsageQuery): Promise<SumRow[]> {
  const { whole, pieces } = cutSpan({ since, until });
  const columns: Readonly<Partial<Record<UsageBy, string>>> = NAME_COLUMNS;
  const name = sql(columns[by] ?? "");
  const thenName = sql(columns[thenBy] ?? "");
  const { keyId = null, group = null, model = null } = only;
  const isWanted = sql`(${keyId}::text IS NULL OR key_id = ${keyId}) AND
    (${group}::text IS NULL OR group_name = ${group}) AND (${model}::text IS NULL OR model = ${model})`;
  return await sql<SumRow[]>`
    WITH pieces AS (
      SELECT piece.*, piece.day <= (SELECT day FROM ledger_start) OR NOT (
        EXISTS (SELECT FROM entries WHERE at >= piece.day * 86400000 AND at < piece.since) OR
        EXISTS (SELECT FROM entries WHERE at >= piece.until AND at < (piece.day + 1) * 86400000)
      ) AS is_whole
      FROM json_to_recordset(${JSON.stringify(pieces)}::text::json) AS piece (day bigint, since bigint, until bigint)
      -- There are no more, which the server cannot know: it would read all entries for the hundred that it counts on.
      LIMIT 2
    ), parts AS (
      SELECT ${name}::text AS name, ${thenName}::text AS then_name, requests, failed, prompt, input_cache_read, input_cache_write_5m,
        input_cache_write_1h, completion, reasoning, images, cost, overrun
      FROM days
      WHERE day >= ${whole.from} AND day < ${whole.until} AND ${isWanted}
      UNION ALL
      SELECT ${name}::text, ${thenName}::text, requests, failed, prompt, input_cache_read, input_cache_write_5m, input_cache_write_1h,
        completion, reasoning, images, cost, overrun
      FROM pieces JOIN days USING (day) WHERE is_whole AND ${isWanted}
      UNION ALL
      SELECT ${name}::text, ${thenName}::text, 1, (ending IN ('failed', 'refused', 'lost'))::integer, prompt, input_cache_read,
        input_cache_write_5m, input_cache_write_1h, completion, reasoning, images, cost, overrun
      FROM (
        SELECT entries.*, day FROM pieces JOIN entries ON at >= since AND at < until WHERE NOT is_whole
      ) entry WHERE ${isWanted}
    )
    SELECT name, then_name, sum(requests) AS requests, sum(failed) AS failed, sum(prompt) AS prompt,
      sum(input_cache_read) AS input_cache_read, sum(input_cache_write_5m) AS input_cache_write_5m,
      sum(input_cache_write_1h) AS input_cache_write_1h, sum(completion) AS completion, sum(reasoning) AS reasoning,
      sum(images) AS images, sum(cost) AS cost, sum(overrun) AS overrun
    FROM parts GROUP BY name, then_name`;
}

/** Sums single entries in one statement. With tags, each entry is read once per tag. */
async function sumEntries(sql: Sql, { since, until, by, thenBy = by, only = {} }: UsageQuery): Promise<SumRow[]> {
  const { keyId = null, group = null, model = null, user = null, tag = null } = only;
  const nameOf = (by: UsageBy) => {
    switch (by) {
      case "user":
        return sql`coalesce(details::json ->> 'user', '')`;
      case "tag":
        return sql`coalesce(one_tag, '')`;
      case "upstream":
        return sql`upstream`;
      case "day":
      case "hour":
      case "minute":
        return sql`(at / ${TIME_STEPS[by].ms}::bigint)::text`;
      default:
        return sql`${sql(NAME_COLUMNS[by])}::text`;
    }
  };
  const tags = by === "tag" || thenBy === "tag"
    ? sql`LEFT JOIN LATERAL json_array_elements_text(details::json -> 'tags') AS one_tag ON true`
    : sql``;
  return await sql<SumRow[]>`
    SELECT ${nameOf(by)} AS name, ${nameOf(thenBy)} AS then_name, count(*) AS requests,
      count(*) FILTER (WHERE ending IN ('failed', 'refused', 'lost')) AS failed, sum(prompt) AS prompt,
      sum(input_cache_read) AS input_cache_read, sum(input_cache_write_5m) AS input_cache_write_5m,
      sum(input_cache_write_1h) AS input_cache_write_1h, sum(completion) AS completion, sum(reasoning) AS reasoning,
      sum(images) AS images, sum(cost) AS cost, sum(overrun) AS overrun
    FROM entries ${tags}
    WHERE at >= ${since} AND at < ${until} AND (${keyId}::text IS NULL OR key_id = ${keyId}) AND
      (${group}::text IS NULL OR group_name = ${group}) AND (${model}::text IS NULL OR model = ${model}) AND
      (${user}::text IS NULL OR details::json ->> 'user' = ${user}) AND
      (${tag}::text IS NULL OR ${tag} IN (SELECT json_array_elements_text(details::json -> 'tags')))
    GROUP BY 1, 2`;
}

function toFigures(row: FigureRow): Omit<UsageSum, "name" | "thenName"> {
  return { ...toCounts(row), cost: BigInt(row.cost), overrun: BigInt(row.overrun) };
}
