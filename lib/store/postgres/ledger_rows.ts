/** Entries, price sheets and holds as rows of the database. */
import type { BudgetClaim, Ending, Hold, KeptEntry, MeteredEndpoint, PriceSheet, UsageSource } from "../ledger.ts";
import type { Sql } from "./client.ts";

/** A row of `entries`. */
interface EntryRow {
  seq: bigint;
  at: bigint;
  status: bigint;
  prompt: bigint;
  input_cache_read: bigint;
  input_cache_write_5m: bigint;
  input_cache_write_1h: bigint;
  completion: bigint;
  reasoning: bigint;
  cost: bigint;
  held: bigint;
  overrun: bigint;
  first_ms: bigint | null;
  total_ms: bigint;
  attempts: bigint;
  images: bigint;
  check_sum: bigint;
  price_version: number | null;
  id: string;
  key_id: string;
  group_name: string;
  model: string;
  upstream: string;
  endpoint: string;
  ending: string;
  source: string;
}

/** A row of `price_sheets`. */
export interface SheetRow extends PriceSheet {
  version: number;
}

/** A row of `holds`. */
interface HoldRow {
  id: string;
  at: bigint;
  key_id: string;
  group_name: string;
  model: string;
  endpoint: string;
  amount: bigint;
  claims: (Omit<BudgetClaim, "budget"> & { budget: string })[];
  lease_until: bigint;
}

/** An entry as a row in JSON: amounts as texts, since numbers of JSON are inexact beyond 2^53. */
export function entryRow({ tokens, sheet: _, ...entry }: KeptEntry): object {
  return {
    seq: entry.seq,
    at: entry.at,
    status: entry.status,
    ...tokens,
    cost: String(entry.cost),
    held: String(entry.held),
    overrun: String(entry.overrun),
    first_ms: entry.firstMs,
    total_ms: entry.totalMs,
    attempts: entry.attempts,
    images: entry.images,
    check_sum: entry.check,
    price_version: entry.priceVersion,
    id: entry.id,
    key_id: entry.keyId,
    group_name: entry.group,
    model: entry.model,
    upstream: entry.upstream,
    endpoint: entry.endpoint,
    ending: entry.ending,
    source: entry.source,
  };
}

/** Entries after a place, in their order. */
export async function readEntries(sql: Sql, { after, limit }: { after: number; limit: number }): Promise<KeptEntry[]> {
  return await toEntries(
    sql,
    await sql<EntryRow[]>`SELECT * FROM entries WHERE seq > ${after} ORDER BY seq LIMIT ${limit}`,
  );
}

/** The entry of a request. */
export async function findEntry(sql: Sql, id: string): Promise<KeptEntry | undefined> {
  const [entry] = await toEntries(sql, await sql<EntryRow[]>`SELECT * FROM entries WHERE id = ${id}`);
  return entry;
}

/** Reads each sheet once, anew for every page: what lives longer would not see that the database is damaged. */
async function toEntries(sql: Sql, rows: readonly EntryRow[]): Promise<KeptEntry[]> {
  const versions = new Set(rows.map(({ price_version }) => price_version).filter((version) => version !== null));
  const sheets = new Map<number, PriceSheet>();
  if (versions.size > 0) {
    const wanted = JSON.stringify([...versions]);
    const found = await sql<SheetRow[]>`
      SELECT * FROM price_sheets
      WHERE version = ANY (ARRAY(SELECT json_array_elements_text(${wanted}::text::json)::integer))`;
    for (const { version, ...sheet } of found) sheets.set(version, sheet);
  }
  return rows.map((row) => toEntry(row, sheets));
}

function toEntry(row: EntryRow, sheets: ReadonlyMap<number, PriceSheet>): KeptEntry {
  const version = row.price_version;
  const sheet = version === null ? undefined : sheets.get(version);
  if (version !== null && sheet === undefined) {
    throw new Error(`Cannot read the ledger: there is no price sheet ${version}`);
  }
  return {
    seq: Number(row.seq),
    id: row.id,
    at: Number(row.at),
    keyId: row.key_id,
    group: row.group_name,
    model: row.model,
    upstream: row.upstream,
    endpoint: row.endpoint as MeteredEndpoint,
    status: Number(row.status),
    ending: row.ending as Ending,
    tokens: {
      prompt: Number(row.prompt),
      input_cache_read: Number(row.input_cache_read),
      input_cache_write_5m: Number(row.input_cache_write_5m),
      input_cache_write_1h: Number(row.input_cache_write_1h),
      completion: Number(row.completion),
      reasoning: Number(row.reasoning),
    },
    source: row.source as UsageSource,
    ...(version !== null && sheet !== undefined && { priceVersion: version, sheet }),
    cost: row.cost,
    held: row.held,
    overrun: row.overrun,
    ...(row.first_ms !== null && { firstMs: Number(row.first_ms) }),
    totalMs: Number(row.total_ms),
    attempts: Number(row.attempts),
    images: Number(row.images),
    check: Number(row.check_sum),
  };
}

/** A hold as a row in JSON, without its lease. */
export function holdRow({ id, at, keyId, group, model, endpoint, amount, claims }: Hold): object {
  return {
    id,
    at,
    key_id: keyId,
    group_name: group,
    model,
    endpoint,
    amount: String(amount),
    claims: claims.map((claim) => ({ ...claim, budget: String(claim.budget) })),
  };
}

/** All open holds, in the order that they were made in, with their leases by the server's clock. */
export async function readHolds(sql: Sql): Promise<Hold[]> {
  return (await sql<HoldRow[]>`SELECT * FROM holds ORDER BY nr`).map(toHold);
}

/**
 * The first holds whose lease is over by that time of the server's clock. Those that a node kept alive before the server was
 * started last are spared for a while: nobody could renew them meanwhile, and their entries may wait for the server.
 */
export async function readOverdue(
  sql: Sql,
  { until, most, graceMs }: { until: bigint; most: number; graceMs: number },
): Promise<Hold[]> {
  const rows = await sql<HoldRow[]>`
    SELECT holds.* FROM holds,
      (SELECT (extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint AS started_at) server
    WHERE lease_until <= ${until} AND (alive_at >= started_at OR started_at + ${graceMs} <= ledger_clock())
    ORDER BY nr LIMIT ${most}`;
  return rows.map(toHold);
}

function toHold(row: HoldRow): Hold {
  return {
    id: row.id,
    at: Number(row.at),
    keyId: row.key_id,
    group: row.group_name,
    model: row.model,
    endpoint: row.endpoint as MeteredEndpoint,
    amount: row.amount,
    claims: row.claims.map((claim) => ({ ...claim, budget: BigInt(claim.budget) })),
    leaseUntil: Number(row.lease_until),
  };
}
