/** Entries and sums of entries as rows of a table, wherever it is. */
import type {
  BilledTokens,
  DaySum,
  Ending,
  KeptEntry,
  MeteredEndpoint,
  PriceSheet,
  UsageBy,
  UsageSource,
} from "./ledger.ts";

/** Columns that name what is summed. */
export const NAME_COLUMNS: Readonly<Record<UsageBy, string>> = {
  key: "key_id",
  group: "group_name",
  model: "model",
  day: "day",
};

/** A row of `entries`, as it is read. Amounts are texts: as numbers they would be inexact beyond 2^53. */
export interface EntryRow extends BilledTokens {
  seq: number;
  id: string;
  at: number;
  key_id: string;
  group_name: string;
  model: string;
  upstream: string;
  endpoint: string;
  status: number;
  ending: string;
  source: string;
  price_version: number | null;
  cost: string;
  held: string;
  overrun: string;
  first_ms: number | null;
  total_ms: number;
  attempts: number;
  images: number;
  check_sum: number;
  /** JSON of the entry's details. */
  details: string | null;
}

/** Counts of a row of sums, in whatever form a database has whole numbers. */
export type CountRow = Record<"requests" | "failed" | keyof BilledTokens | "images", number | bigint | string>;

/** The entry of a row. `sheetOf`: the price sheet of a version, which must be there. */
export function toEntry(row: EntryRow, sheetOf: (version: number) => PriceSheet): KeptEntry {
  const { price_version: priceVersion, first_ms: firstMs, details } = row;
  return {
    seq: row.seq,
    id: row.id,
    at: row.at,
    keyId: row.key_id,
    group: row.group_name,
    model: row.model,
    upstream: row.upstream,
    endpoint: row.endpoint as MeteredEndpoint,
    status: row.status,
    ending: row.ending as Ending,
    tokens: toTokens(row),
    source: row.source as UsageSource,
    ...(priceVersion !== null && { priceVersion, sheet: sheetOf(priceVersion) }),
    cost: BigInt(row.cost),
    held: BigInt(row.held),
    overrun: BigInt(row.overrun),
    ...(firstMs !== null && { firstMs }),
    totalMs: row.total_ms,
    attempts: row.attempts,
    images: row.images,
    check: row.check_sum,
    ...(details !== null && { details: JSON.parse(details) }),
  };
}

/** What a row of sums counts, amounts aside. */
export function toCounts(row: CountRow): Pick<DaySum, "requests" | "failed" | "tokens" | "images"> {
  return {
    requests: Number(row.requests),
    failed: Number(row.failed),
    tokens: toTokens(row),
    images: Number(row.images),
  };
}

function toTokens(row: Readonly<Record<keyof BilledTokens, number | bigint | string>>): BilledTokens {
  return {
    prompt: Number(row.prompt),
    input_cache_read: Number(row.input_cache_read),
    input_cache_write_5m: Number(row.input_cache_write_5m),
    input_cache_write_1h: Number(row.input_cache_write_1h),
    completion: Number(row.completion),
    reasoning: Number(row.reasoning),
  };
}
