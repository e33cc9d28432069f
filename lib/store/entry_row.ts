/** Converts entries to and from rows, for both databases, checks them, and computes the checksums that chain them. */
import { crc32 } from "node:zlib";
import { TOKEN_CLASSES, tokenCounts } from "./days.ts";
import type {
  BilledTokens,
  DaySum,
  Ending,
  Entry,
  Hold,
  KeptEntry,
  MeteredEndpoint,
  PriceSheet,
  UsageSource,
} from "./ledger.ts";

/** Columns of `entries` that hold the facts of an entry, in the order of `entryFacts`. */
const FACT_COLUMNS = [
  "seq",
  "id",
  "at",
  "key_id",
  "group_name",
  "model",
  "upstream",
  "endpoint",
  "status",
  "ending",
  ...TOKEN_CLASSES,
  "source",
  "price_version",
  "cost",
  "held",
  "overrun",
  "first_ms",
  "total_ms",
  "attempts",
  "images",
];

/** Index of the price sheet among the facts of a checksum: after its version. */
const SHEET_AT = FACT_COLUMNS.indexOf("price_version") + 1;

/** Columns for searches, in the order of `searchedValues`. */
const SEARCHED_COLUMNS = ["reason", "end_user", "tags"];

/** Columns of `entries`, in the order of `entryValues`. */
export const ENTRY_COLUMNS: readonly string[] = [...FACT_COLUMNS, "check_sum", "details", ...SEARCHED_COLUMNS];

/** Columns of amounts, which are read as text: numbers are inexact beyond 2^53. */
export const AMOUNT_COLUMNS: ReadonlySet<string> = new Set(["cost", "held", "overrun"]);

/** Checksum that no entry has, for entries whose columns for searches contradict their details. */
const NO_CHECK = -1;

/** A value of a column. */
export type ColumnValue = number | string | null;

/** Returns the facts of an entry, with amounts as text. Its row and its checksum are made from them. */
export function entryFacts(entry: Omit<KeptEntry, "check">): ColumnValue[] {
  return [
    entry.seq,
    entry.id,
    entry.at,
    entry.keyId,
    entry.group,
    entry.model,
    entry.upstream,
    entry.endpoint,
    entry.status,
    entry.ending,
    ...tokenCounts(entry.tokens),
    entry.source,
    entry.priceVersion ?? null,
    entry.cost.toString(),
    entry.held.toString(),
    entry.overrun.toString(),
    entry.firstMs ?? null,
    entry.totalMs,
    entry.attempts,
    entry.images,
  ];
}

/** Returns the values of an entry's row, in the order of `ENTRY_COLUMNS`. */
export function entryValues(entry: KeptEntry, facts: readonly ColumnValue[]): ColumnValue[] {
  const details = entry.details === undefined ? null : JSON.stringify(entry.details);
  return [...facts, entry.check, details, ...searchedValues(entry)];
}

/** Returns the values of the columns for searches. They repeat details, which the checksum covers. */
export function searchedValues({ ending, details }: Pick<Entry, "ending" | "details">): (string | null)[] {
  const reason = ending === "lost" ? "lost" : details?.reason?.code;
  return [reason ?? null, details?.user ?? null, details?.tags === undefined ? null : `,${details.tags.join(",")},`];
}

/**
 * Returns the CRC-32 of all facts of an entry and of the checksum of the previous entry, `previousCheck`. It detects
 * damage, but no forgery.
 */
export function checkSum(
  entry: Omit<KeptEntry, "check">,
  previousCheck: number,
  facts: readonly ColumnValue[] = entryFacts(entry),
): number {
  const checked = [previousCheck, ...facts];
  // The index is one higher here, as the checksum of the previous entry comes first.
  checked.splice(SHEET_AT + 1, 0, entry.sheet === undefined ? null : sheetText(entry.sheet));
  // Left out if absent, so that checksums of releases without details stay valid.
  if (entry.details !== undefined) checked.push(JSON.stringify(entry.details));
  // The previous checksum is part of the text instead of crc32's second argument: from 2^31 on, Deno 2.4 computes that
  // wrongly in optimized code.
  return crc32(JSON.stringify(checked));
}

/** Returns the canonical text of a price sheet, which is equal for equal prices. */
export function sheetText(sheet: PriceSheet): string {
  let text = sheetTexts.get(sheet);
  if (text === undefined) {
    text = JSON.stringify(sheetValues(sheet));
    sheetTexts.set(sheet, text);
  }
  return text;
}

/** Returns the values of a price sheet's row, in the order of `SHEET_COLUMNS`. */
export function sheetValues(sheet: PriceSheet): string[] {
  return SHEET_NAMES.map((name) => sheet[name]);
}

const SHEET_NAMES = [
  ...["model", "factor", "prompt", "completion"] as const,
  ...["input_cache_read", "input_cache_write_5m", "input_cache_write_1h"] as const,
] satisfies (keyof PriceSheet)[];

/** Columns of `price_sheets` except its version. */
export const SHEET_COLUMNS: string = SHEET_NAMES.join(", ");

/** Cached texts: requests share price sheets, which never change. */
const sheetTexts = new WeakMap<PriceSheet, string>();

/** A row of `entries`. Amounts are read as text: numbers are inexact beyond 2^53. */
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
  /** `EntryDetails` as JSON. */
  details: string | null;
  reason: string | null;
  end_user: string | null;
  tags: string | null;
}

/** The counts of a row of sums, in the integer type of the database. */
export type CountRow = Record<"requests" | "failed" | keyof BilledTokens | "images", number | bigint | string>;

/** Converts a row to an entry. @param sheetOf returns the price sheet of a version */
export function toEntry(row: EntryRow, sheetOf: (version: number) => PriceSheet): KeptEntry {
  const { price_version: priceVersion, first_ms: firstMs, details } = row;
  const entry: KeptEntry = {
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
  if (!hasSearchedColumns(row, entry)) entry.check = NO_CHECK;
  return entry;
}

/** Returns whether the columns for searches match the details. Rows of older releases have no values in them. */
function hasSearchedColumns({ reason, end_user, tags }: EntryRow, entry: KeptEntry): boolean {
  if (reason === null && end_user === null && tags === null) return true;
  const values = searchedValues(entry);
  return reason === values[0] && end_user === values[1] && tags === values[2];
}

/** Converts a row of sums to counts, without amounts. */
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

/** Largest amount that SQLite and Postgres store as a 64-bit integer: about 9.2 million USD. */
export const MAX_AMOUNT = 2n ** 63n - 1n;

/** Checks the numbers of an entry. @throws {RangeError} for a number or amount that cannot be stored exactly */
export function assertEntry(entry: Entry): void {
  const { tokens } = entry;
  assertCount(entry, "at", entry.at);
  assertCount(entry, "status", entry.status);
  for (const name of TOKEN_CLASSES) assertCount(entry, name, tokens[name]);
  if (entry.firstMs !== undefined) assertCount(entry, "firstMs", entry.firstMs);
  assertCount(entry, "totalMs", entry.totalMs);
  assertCount(entry, "attempts", entry.attempts);
  assertCount(entry, "images", entry.images);
  for (const { item, count } of entry.details?.extras ?? []) assertCount(entry, item, count);
  assertAmount(entry, "cost", entry.cost);
  assertAmount(entry, "held", entry.held);
  assertAmount(entry, "overrun", entry.overrun);
}

function assertCount({ id }: Entry, name: string, count: number): void {
  if (!Number.isSafeInteger(count) || count < 0) throw new RangeError(`Cannot enter "${id}": ${name} is ${count}`);
}

function assertAmount({ id }: Entry, name: string, amount: bigint): void {
  if (amount < 0n || amount > MAX_AMOUNT) throw new RangeError(`Cannot enter "${id}": ${name} is ${amount}`);
}

/** Checks a hold. @throws {RangeError} if its amount cannot be stored exactly, or its claims are in the wrong order */
export function assertHold({ id, amount, claims }: Hold): void {
  if (amount < 0n || amount > MAX_AMOUNT) throw new RangeError(`Cannot hold for "${id}": the amount is ${amount}`);
  if (claims.findLastIndex(({ scope }) => scope === "user") > 0) {
    throw new RangeError(`Cannot hold for "${id}": the claim of its end user is not the first`);
  }
}
