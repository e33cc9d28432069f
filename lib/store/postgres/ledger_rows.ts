/** Reads entries, price sheets and holds of the database, and converts them to and from rows. */
import { AMOUNT_COLUMNS, ENTRY_COLUMNS, type EntryRow, toEntry } from "../entry_row.ts";
import { type ClaimJson, type HoldRow, toClaimsJson, toHold } from "../hold_row.ts";
import { mapSliced } from "../../scheduler.ts";
import {
  type Durations,
  type DurationSpan,
  type Hold,
  type KeptEntry,
  type LedgerStore,
  type PriceSheet,
  type Spenders,
  SPENDERS_AT_ONCE,
} from "../ledger.ts";
import { FAILED_SQL } from "../days.ts";
import type { Sql } from "./client.ts";

/** A row of `price_sheets`. */
export interface SheetRow extends PriceSheet {
  version: number;
}

/** The columns of `entries` as they are selected. */
const COLUMNS = ENTRY_COLUMNS.map((name) => AMOUNT_COLUMNS.has(name) ? `${name}::text` : name).join(", ");

/**
 * Entries and their price sheets. Each list is one JSON value, because parsing each 64-bit column as `bigint` is
 * slower.
 */
interface Page {
  entries: EntryRow[];
  sheets: SheetRow[];
}

interface PageQuery {
  /** The table, or a subquery of it; absent: `entries`. */
  source?: ReturnType<Sql>;
  condition: ReturnType<Sql>;
  /** Order by which the rows are selected, as SQL. */
  order: string;
  /** Order of the result, as SQL; absent: the same. Amounts are texts there, so it must not use them. */
  pageOrder?: string;
  limit: number;
}

/** Reads entries after a seq, in order. */
export async function readEntries(sql: Sql, { after, limit }: { after: number; limit: number }): Promise<KeptEntry[]> {
  return await readPage(sql, { condition: sql`seq > ${after}`, order: "seq", limit });
}

/** Implements `LedgerStore.spenders`. */
export async function readSpenders(sql: Sql, after: number): Promise<Spenders> {
  const [row] = await sql<{ seq: bigint; keys: string[]; groups: string[]; users: Spenders["users"] }[]>`
    WITH charged AS MATERIALIZED (
      SELECT DISTINCT key_id, group_name FROM entries
      WHERE seq > ${after}::bigint AND seq <= ${after}::bigint + ${SPENDERS_AT_ONCE} AND cost > 0
    ), users AS MATERIALIZED (
      SELECT key_id AS "keyId", coalesce(end_user, '') AS "user", bool_or(reason IS NOT DISTINCT FROM 'budget') AS refused
      FROM entries
      WHERE seq > ${after}::bigint AND seq <= ${after}::bigint + ${SPENDERS_AT_ONCE} AND details IS NOT NULL
        AND (cost > 0 AND details::json ->> 'user_since' IS NOT NULL
          OR reason = 'budget' AND details::json #>> '{reason,budget,scope}' = 'user')
      GROUP BY 1, 2
    )
    SELECT least((SELECT seq FROM ledger_head), ${after}::bigint + ${SPENDERS_AT_ONCE}) AS seq,
      (SELECT coalesce(json_agg(DISTINCT key_id), '[]') FROM charged) AS keys,
      (SELECT coalesce(json_agg(DISTINCT group_name), '[]') FROM charged) AS groups,
      (SELECT coalesce(json_agg(users), '[]') FROM users) AS users`;
  if (row === undefined) throw new Error("Cannot read the ledger: the database returned nothing");
  return { ...row, seq: Number(row.seq) };
}

/** Implements `LedgerStore.entriesWithin`. */
export async function readEntriesWithin(
  sql: Sql,
  { since, after, until, limit }: Parameters<LedgerStore["entriesWithin"]>[0],
): Promise<KeptEntry[]> {
  return await readPage(sql, {
    condition: sql`(at, seq) > (${since}, ${after}) AND at < ${until}`,
    order: "at, seq",
    limit,
  });
}

/** Implements `LedgerStore.durations` with one statement, since there may be hundreds of periods. */
export async function readDurations(sql: Sql, spans: readonly DurationSpan[]): Promise<Durations[]> {
  const rows = await sql<{ place: number; took: string }[]>`
    SELECT place, json_agg(json_build_array(first, total))::text AS took
    FROM json_to_recordset(${JSON.stringify(spans.map((span, place) => ({ place, ...span })))}::text::json)
      AS span (place integer, since bigint, until bigint, "limit" bigint)
    CROSS JOIN LATERAL (
      SELECT CASE WHEN ${sql.unsafe(FAILED_SQL)} THEN NULL ELSE first_ms END AS first, total_ms AS total
      FROM entries WHERE at >= span.since AND at < span.until ORDER BY at, seq LIMIT span.limit
    ) entry GROUP BY place`;
  const result: Durations[] = spans.map(() => ({ read: 0, answered: [] }));
  await mapSliced(rows, ({ place, took }) => {
    const durations = JSON.parse(took) as [number | null, number][];
    const answered = durations.flatMap(([firstMs, totalMs]) => firstMs === null ? [] : [{ firstMs, totalMs }]);
    result[place] = { read: durations.length, answered };
  });
  return result;
}

/** Reads the entry of a request. */
export async function findEntry(sql: Sql, id: string): Promise<KeptEntry | undefined> {
  const [entry] = await readPage(sql, { condition: sql`id = ${id}`, order: "seq", limit: 1 });
  return entry;
}

/**
 * Reads a page of entries with their price sheets. Sheets are not cached beyond a page: that would hide damage of the
 * database.
 */
export async function readPage(
  sql: Sql,
  { source = sql`entries`, condition, order, pageOrder = order, limit }: PageQuery,
): Promise<KeptEntry[]> {
  const ordered = sql.unsafe(`ORDER BY ${order}`);
  const pageOrdered = sql.unsafe(`ORDER BY ${pageOrder}`);
  const [page] = await sql<Page[]>`
    WITH page AS MATERIALIZED (
      SELECT ${sql.unsafe(COLUMNS)} FROM ${source} WHERE ${condition} ${ordered} LIMIT ${limit}
    )
    SELECT (SELECT coalesce(json_agg(page ${pageOrdered}), '[]') FROM page) AS entries,
      (SELECT coalesce(json_agg(price_sheets), '[]') FROM price_sheets
        WHERE version IN (SELECT price_version FROM page)) AS sheets`;
  if (page === undefined) throw new Error("Cannot read the ledger: the database returned nothing");
  const sheets = new Map(page.sheets.map(({ version, ...sheet }) => [version, sheet]));
  return page.entries.map((row) => toEntry(row, (version) => sheetOf(sheets, version)));
}

function sheetOf(sheets: ReadonlyMap<number, PriceSheet>, version: number): PriceSheet {
  const sheet = sheets.get(version);
  if (sheet === undefined) throw new Error(`Cannot read the ledger: there is no price sheet ${version}`);
  return sheet;
}

/** Converts a hold to a row in JSON, without its lease. */
export function holdRow({ id, at, keyId, group, model, endpoint, amount, claims }: Hold): object {
  return {
    id,
    at,
    key_id: keyId,
    group_name: group,
    model,
    endpoint,
    amount: String(amount),
    claims: toClaimsJson(claims),
  };
}

type ClaimingRow = HoldRow & { claims: ClaimJson[] };

/** Reads all open holds in order, with their leases by the server's clock. */
export async function readHolds(sql: Sql): Promise<Hold[]> {
  return (await sql<ClaimingRow[]>`SELECT * FROM holds ORDER BY nr`).map((row) => toHold(row, row.claims));
}

/**
 * Reads the first expired holds. Holds that were last renewed before the server's start are left out for `graceMs`
 * milliseconds after it: they could not be renewed, and their entries may still arrive.
 * @param query `until`: leases that end by then have expired, by the server's clock; `limit`: most holds to read
 */
export async function readOverdue(
  sql: Sql,
  { until, limit, graceMs }: { until: bigint; limit: number; graceMs: number },
): Promise<Hold[]> {
  const rows = await sql<ClaimingRow[]>`
    SELECT holds.* FROM holds,
      (SELECT (extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint AS started_at) server
    WHERE lease_until <= ${until} AND (alive_at >= started_at OR started_at + ${graceMs} <= ledger_clock())
    ORDER BY nr LIMIT ${limit}`;
  return rows.map((row) => toHold(row, row.claims));
}
