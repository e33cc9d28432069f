/** Adds up the usage of a period with one statement, which sees one snapshot. */
import { mapSliced } from "../../scheduler.ts";
import { cutSpan, DAY_MS, type SumKind, sumKindOf, Sums } from "../days.ts";
import type { LedgerStore, PriceSheet, UpstreamDaySum, UsageQuery, UsageSum } from "../ledger.ts";
import { DAYS, GROUPING_COLUMNS, SHORT_TAIL, stepMs, SUM_TABLES } from "../sums.ts";
import { allOf, conditionsOf } from "../search_sql.ts";
import type { Sql } from "./client.ts";
import { DIALECT, fragmentOf } from "./fragments.ts";
import { type FigureRow, toFigures } from "./ledger_sums.ts";
import { entryColumn, withSheets } from "./sums_shape.ts";

/** A period in Unix milliseconds, and a filter. */
type Span = Pick<UsageQuery, "since" | "until" | "only">;

/** A period and a filter, with the names and figures of the result as columns of a table of sums. */
interface SumsQuery extends Span {
  /** The sums that have these names; undefined: only entries have. */
  kind: SumKind | undefined;
  names: readonly string[];
  figures: readonly string[];
}

type SumRow = FigureRow & { name_0: string; name_1?: string; saved: string | bigint };

/** Implements `LedgerStore.usage`. */
export async function readUsage(sql: Sql, query: UsageQuery): Promise<UsageSum[]> {
  const { by, thenBy } = query;
  const names = [GROUPING_COLUMNS[by], ...(thenBy === undefined ? [] : [GROUPING_COLUMNS[thenBy]])];
  const rows = await readSums<SumRow>(sql, {
    ...query,
    kind: sumKindOf(query),
    names,
    figures: SUM_TABLES.users.figures,
  });
  const sums = new Sums();
  await mapSliced(rows, (row) => {
    sums.addRow(query, [row.name_0, row.name_1], { ...toFigures(row), saved: BigInt(row.saved) });
  });
  return await sums.list();
}

type UpstreamRow =
  & FigureRow
  & Record<"target_cost" | "counted" | "attempts", string | bigint>
  & Record<"name_0" | "name_1" | "name_2" | "name_3", string>
  & { name_4: string };

/** Implements `LedgerStore.upstreamDays`. */
export async function readUpstreamDays(sql: Sql, query: Span): Promise<UpstreamDaySum[]> {
  const kind = sumKindOf({ ...query, by: "upstream" });
  const names = ["upstream", "model", "day", "price_version", "has_target_price"];
  const { figures } = SUM_TABLES.upstreams;
  const rows = await readSums<UpstreamRow>(sql, { ...query, kind, names, figures });
  const sheets = new Map(
    (await sql<(PriceSheet & { version: number })[]>`SELECT * FROM price_sheets`).map(({ version, ...sheet }) => [
      version,
      sheet,
    ]),
  );
  return await mapSliced(rows, (row) => {
    const sheet = sheets.get(Number(row.name_3));
    return {
      upstream: row.name_0,
      model: row.name_1,
      day: Number(row.name_2),
      ...(sheet !== undefined && { sheet }),
      hasTargetPrice: row.name_4 === "true",
      ...toFigures(row),
      targetCost: BigInt(row.target_cost),
      attempts: Number(row.attempts),
      counted: Number(row.counted),
    };
  });
}

/**
 * Adds up a period in one statement. Whole days or hours come from sums and from the entries that are not in the sums
 * yet. A part of a day or hour comes from entries, unless all entries of the step are in that part. Steps from before
 * the store had these sums come from the sums that are written with the entries if they have the names, otherwise from
 * entries.
 */
async function readSums<Row extends object>(sql: Sql, summed: SumsQuery): Promise<Row[]> {
  const { kind, names, figures } = summed;
  const [backlog] = await sql<{ count: bigint }[]>`
    SELECT (SELECT seq FROM ledger_head) - (SELECT seq FROM sums_head) AS count`;
  const isTailShort = Number(backlog?.count) <= SHORT_TAIL;
  const parts = kind === undefined
    ? sql`SELECT * FROM ${entriesOf(sql, summed, sql`entries WHERE at >= ${summed.since} AND at < ${summed.until}`)}`
    : partsOfPeriod(sql, { ...summed, kind }, isTailShort);
  const by = names.map((_, index) => `name_${index}`).join(", ");
  const sums = figures.map((name) => `sum(${name})::numeric(99, 0)::text AS ${name}`).join(", ");
  const rows = await sql<object[]>`
    SELECT ${sql.unsafe(`${by}, ${sums}`)} FROM (${parts}) parts GROUP BY ${sql.unsafe(by)}`;
  return [...rows] as Row[];
}

type Fragment = ReturnType<Sql>;

/**
 * Expressions for the first day or hour of each kind of sums. Sums of end users are deleted with the entries of a day.
 */
const FIRST_STEPS: Readonly<Record<SumKind, string>> = {
  upstreams: "h.first_day",
  hours: "h.first_hour",
  users: "greatest(h.first_day, s.day + 1)",
};

/** Returns the query for all rows to be added up, from sums and from entries. */
function partsOfPeriod(sql: Sql, summed: SumsQuery & { kind: SumKind }, isTailShort: boolean): Fragment {
  const { kind, names } = summed;
  const { table, step } = SUM_TABLES[kind];
  const ms = stepMs(SUM_TABLES[kind]);
  const { whole, pieces } = cutSpan(summed, ms);
  const canUseDays = kind === "upstreams" && names.every((name) => [DAYS.step, ...DAYS.names].includes(name));
  const steps = sql.unsafe(columnsOf(summed, table));
  const old = canUseDays
    ? sql`
      UNION ALL
      SELECT ${
      sql.unsafe(columnsOf(summed, "days"))
    } FROM spans JOIN days ON day >= from_step AND day < until_step, head
      WHERE is_whole AND day < first_step AND ${filterCondition(sql, summed)}`
    : sql``;
  const tail = isTailShort
    ? sql`ledger_tail() e JOIN spans ON at >= since AND at < until, head`
    : sql`spans JOIN entries e ON at >= since AND at < until, head`;
  const parts = JSON.stringify([
    { ...whole, step: null },
    ...pieces.map(({ step, since, until }) => ({ from: step, until: step + 1, step, since, upto: until })),
  ]);
  return sql`
    WITH head AS MATERIALIZED (
      SELECT h.seq AS head_seq, ${sql.unsafe(FIRST_STEPS[kind])} AS first_step, s.day AS gone
      -- Each has one row, which the server cannot know.
      FROM (SELECT * FROM sums_head LIMIT 1) h, (SELECT * FROM ledger_start LIMIT 1) s
    ), spans AS MATERIALIZED (
      SELECT "from" AS from_step, part.until AS until_step, coalesce(since, "from" * ${ms}::bigint) AS since,
        coalesce(upto, part.until * ${ms}::bigint) AS until,
        step IS NULL OR CASE WHEN step * ${ms}::bigint < (gone + 1) * ${DAY_MS}::bigint THEN ${
    kind === "upstreams"
  } ELSE NOT (
          EXISTS (SELECT FROM entries WHERE at >= step * ${ms}::bigint AND at < part.since) OR
          EXISTS (SELECT FROM entries WHERE at >= part.upto AND at < (step + 1) * ${ms}::bigint)
        ) END AS is_whole
      FROM json_to_recordset(${parts}::text::json)
        AS part ("from" bigint, until bigint, step bigint, since bigint, upto bigint), head
      -- There are no more, which the server cannot know: it would read all entries for the hundred that it counts on.
      LIMIT 3
    )
    SELECT ${steps} FROM spans JOIN ${sql(table)} ON ${sql(step)} >= from_step AND ${sql(step)} < until_step, head
    WHERE is_whole AND ${sql(step)} >= first_step AND ${filterCondition(sql, summed)}
    ${old}
    UNION ALL
    SELECT * FROM ${
    entriesOf(
      sql,
      summed,
      sql`(
      SELECT e.* FROM ${tail} WHERE is_whole AND at >= first_step * ${ms}::bigint AND e.seq > head_seq
      UNION ALL
      SELECT e.* FROM spans JOIN entries e ON at >= since AND at < until WHERE NOT is_whole
      UNION ALL
      SELECT e.* FROM spans CROSS JOIN head JOIN entries e ON at >= since AND at < least(until, first_step * ${ms}::bigint)
      WHERE is_whole AND since < first_step * ${ms}::bigint AND ${!canUseDays}
    ) entries WHERE true`,
    )
  }`;
}

function columnsOf({ names, figures }: SumsQuery, table: string): string {
  return [
    ...names.map((name, index) => {
      const column = name === "day" && table === SUM_TABLES.hours.table ? "(hour / 24)" : name;
      return `${column}::text AS name_${index}`;
    }),
    ...figures.map((name) => table === "days" && name === "saved" ? "0 AS saved" : name),
  ].join(", ");
}

/** Returns a subquery for the names and figures of the entries that pass the filter. */
function entriesOf(sql: Sql, summed: SumsQuery, source: Fragment): Fragment {
  const columns = [
    ...summed.names.map((name, index) => `(${entryName(name)})::text AS name_${index}`),
    ...summed.figures.map((name) => `${entryColumn(name)} AS ${name}`),
  ].join(", ");
  return sql`(
    WITH entry AS NOT MATERIALIZED (SELECT * FROM ${source} AND ${filterCondition(sql, summed)})
    SELECT ${sql.unsafe(`${columns} FROM ${withSheets("entry")}`)}
  ) figures`;
}

function entryName(name: string): string {
  return name.startsWith("at ") ? `e.${name}` : entryColumn(name);
}

function filterCondition(sql: Sql, { only = {} }: Span): Fragment {
  return fragmentOf(sql, allOf(conditionsOf(only, DIALECT)));
}

/** Implements `LedgerStore.sumsOfStep`. */
export async function readSumsOfStep(
  sql: Sql,
  kind: SumKind,
  after: number,
): ReturnType<LedgerStore["sumsOfStep"]> {
  const { table, step, names, figures } = SUM_TABLES[kind];
  const keys = names.map((name) => name === "has_target_price" ? `${name}::integer` : name).join(", ");
  const rows = await sql<{ step: bigint; names: string[]; figures: string[] }[]>`
    SELECT ${sql(step)} AS step, json_build_array(${sql.unsafe(keys)}) AS names,
      json_build_array(${sql.unsafe(figures.map((name) => `${name}::text`).join(", "))}) AS figures
    FROM ${sql(table)} WHERE ${sql(step)} = (
      SELECT min(${sql(step)}) FROM ${sql(table)} WHERE ${sql(step)} > ${after})`;
  const [first] = rows;
  if (first === undefined) return undefined;
  const sums = new Map<string, bigint[]>();
  await mapSliced(rows, ({ names, figures }) => sums.set(JSON.stringify(names.map(String)), figures.map(BigInt)));
  return { step: Number(first.step), sums };
}
