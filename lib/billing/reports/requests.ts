/** Searches single requests of the ledger, page by page. */
import type { Config } from "../../config.ts";
import type { KeyStore } from "../../store/keys.ts";
import {
  inputTokensOf,
  type KeptEntry,
  type LedgerStore,
  METERED_ENDPOINTS,
  REASON_CODES,
} from "../../store/ledger.ts";
import { type EntryFilter, type EntryOrder, type EntrySearch, matchesFilter, orderValue } from "../../store/search.ts";
import { formatUsd, parseUsd } from "../money.ts";
import { requestNames } from "./explain.ts";
import { readPeriod } from "./period.ts";
import { ReportQueryError } from "./report_errors.ts";
import { whyText } from "./reason_text.ts";
import type { RequestLine, RequestPage } from "./request_schemas.ts";
import { keyNames } from "./usage.ts";
import { readCount, readOneOf, readUsageFilter, requireKnown } from "./usage_filter.ts";

/** Page size: default and maximum. */
const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 1_000;

/** Exclusive bound of amounts: the ledger stores them as 64-bit integers. */
const AMOUNT_BOUND = 2n ** 63n;

/** Entries that are read at a time for `after_seq`. */
const ENTRIES_PER_READ = 1_000;

/** Names of the parameters of a search. */
export const REQUEST_PARAMETERS = [
  ...["since", "until", "key", "group", "model", "upstream", "endpoint", "status", "failed", "reason"] as const,
  ...["user", "tag", "min_cost_usd", "min_ms", "sort", "limit", "cursor", "after_seq"] as const,
] as const;

/** The parameters of a search as text. */
export type RequestTexts = Partial<Record<typeof REQUEST_PARAMETERS[number], string>>;

/** Columns of requests as CSV: members of a line, in the order of the columns. */
export const REQUEST_COLUMNS: readonly (keyof RequestLine)[] = [
  ...["id", "seq", "at", "key", "key_id", "group", "model", "upstream", "endpoint", "status", "ending"] as const,
  ...["reason", "why", "attempts", "first_ms", "total_ms", "prompt_tokens", "completion_tokens"] as const,
  ...["images", "cost_usd", "user", "tags"] as const,
];

/** Returns the cells of a request in the order of `REQUEST_COLUMNS`. */
export function requestCells(line: RequestLine): string[] {
  return REQUEST_COLUMNS.map((name) => {
    const value = line[name];
    if (name === "tags") return line.tags.join(" ");
    return value === null ? "" : String(value);
  });
}

/** The sources of requests, keys and the configuration. */
export interface RequestParts {
  ledger: Pick<LedgerStore, "search" | "entries" | "lastSeq">;
  keys: Pick<KeyStore, "find" | "findIds">;
  config: Pick<Config, "keys" | "groups" | "models" | "upstreams">;
}

/**
 * Finds a page of requests. With `after_seq`, these are requests that were entered after that seq, in the order of the
 * ledger.
 * @param options `now`: Unix time in milliseconds; `signal`: aborts the search
 * @throws {ReportQueryError} for invalid parameters
 * @throws the signal's reason if it is aborted
 */
export async function findRequests(
  parts: RequestParts,
  texts: RequestTexts,
  { now, signal }: { now: number; signal?: AbortSignal },
): Promise<RequestPage> {
  const order = readOneOf(texts.sort, "sort", ORDERS) ?? "time";
  const { at, after } = readCursor(texts, order) ?? { at: now, after: undefined };
  const filter = await readFilter(texts, parts, at);
  const limit = readCount(texts.limit, "limit", { min: 1, max: MAX_LIMIT }) ?? DEFAULT_LIMIT;
  const { ledger } = parts;
  if (texts.after_seq !== undefined) return await findNew(parts, { filter, limit, texts });
  // Read before the search, so that a following search with `after_seq` finds all entries made meanwhile.
  const last_seq = await ledger.lastSeq();
  const search: EntrySearch = { ...filter, order, limit, after };
  const entries = await ledger.search(search, signal);
  signal?.throwIfAborted();
  if (entries.length === 0 && after === undefined) requireConfigured(filter, parts.config);
  const last = entries.length < limit ? undefined : entries.at(-1);
  return {
    object: "list",
    data: await linesOf(entries, parts),
    next: last === undefined ? null : `${order}.${orderValue(last, order)}.${last.seq}.${at}`,
    last_seq,
  };
}

async function findNew(
  parts: RequestParts,
  { filter, limit, texts }: { filter: EntryFilter; limit: number; texts: RequestTexts },
): Promise<RequestPage> {
  const excluded = (["sort", "cursor"] as const).find((name) => texts[name] !== undefined);
  if (excluded !== undefined) {
    throw new ReportQueryError(`Cannot use "${excluded}" together with "after_seq"`, excluded);
  }
  const after = readCount(texts.after_seq, "after_seq") ?? 0;
  const { data, last_seq } = await readNew(parts, { filter, limit, after });
  if (data.length === 0) requireConfigured(filter, parts.config);
  return { object: "list", data, next: null, last_seq };
}

/** Reads matching requests after a seq, in the order of the ledger. `last_seq`: seq of the last entry that was read. */
export async function readNew(
  parts: RequestParts,
  { filter, limit = ENTRIES_PER_READ, after }: { filter: EntryFilter; limit?: number; after: number },
): Promise<Pick<RequestPage, "data" | "last_seq">> {
  const entries = await parts.ledger.entries({ after, limit: ENTRIES_PER_READ });
  const matching = entries.filter((entry) => matchesFilter(entry, filter));
  const page = matching.slice(0, limit);
  // Entries beyond the limit belong to the next page.
  const last = page.length < matching.length ? page.at(-1) : entries.at(-1);
  return { data: await linesOf(page, parts), last_seq: last?.seq ?? after };
}

/**
 * Checks that the names in a filter are configured: a search without a result may have a mistyped name.
 * @throws {ReportQueryError} for an unknown name
 */
export function requireConfigured(filter: EntryFilter, config: RequestParts["config"]): void {
  requireKnown(filter, config);
  const { upstream } = filter;
  if (upstream === undefined || Object.hasOwn(config.upstreams, upstream)) return;
  throw new ReportQueryError(
    `Cannot find upstream "${upstream}": it is not configured and has no requests in the period`,
    "upstream",
  );
}

async function linesOf(entries: readonly KeptEntry[], { keys, config }: RequestParts): Promise<RequestLine[]> {
  const names = await keyNames({ keys, config }, [...new Set(entries.map(({ keyId }) => keyId))]);
  return entries.map((entry) => lineOf(entry, names.get(entry.keyId)));
}

function lineOf(entry: KeptEntry, keyName: string | undefined): RequestLine {
  const { tokens, details } = entry;
  return {
    ...requestNames(entry, keyName),
    status: entry.status === 0 ? null : entry.status,
    ending: entry.ending,
    reason: entry.ending === "lost" ? "lost" : details?.reason?.code ?? null,
    why: whyText(entry, keyName) ?? null,
    attempts: entry.attempts,
    first_ms: entry.firstMs ?? null,
    total_ms: entry.totalMs,
    prompt_tokens: inputTokensOf(tokens),
    completion_tokens: tokens.completion,
    images: entry.images,
    cost_usd: formatUsd(entry.cost),
    user: details?.user ?? null,
    tags: details?.tags ?? [],
  };
}

/** Reads the filter of a search. @throws {ReportQueryError} for parameters that cannot be read */
export async function readFilter(texts: RequestTexts, parts: RequestParts, now: number): Promise<EntryFilter> {
  const { upstream, failed } = texts;
  const minMs = readCount(texts.min_ms, "min_ms");
  const minCost = readAmount(texts);
  const status = readStatus(texts);
  const endpoint = readOneOf(texts.endpoint, "endpoint", METERED_ENDPOINTS);
  const reason = readOneOf(texts.reason, "reason", [...REASON_CODES, "lost"]);
  if (failed !== undefined && failed !== "true") {
    throw new ReportQueryError(`Cannot read failed "${failed}": expected true`, "failed");
  }
  return {
    ...readSpan(texts, now),
    ...await readUsageFilter(texts, parts),
    ...{ upstream, endpoint, status, reason, minMs, minCost },
    failed: failed === undefined ? undefined : true,
  };
}

/**
 * Reads the period of a search. Without `since`, it begins with the first entry; without `until`, it has no end, since
 * the clock of the node that made an entry may be ahead.
 */
function readSpan({ since = "1970-01-01", until }: RequestTexts, now: number): Pick<EntryFilter, "since" | "until"> {
  try {
    const period = readPeriod({ since, until }, now);
    return until === undefined ? { ...period, until: Number.MAX_SAFE_INTEGER } : period;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new ReportQueryError(error.message, until === undefined ? "since" : "until", error);
  }
}

function readStatus({ status }: RequestTexts): EntryFilter["status"] {
  if (status === undefined) return undefined;
  if (/^[1-5]xx$/.test(status)) return { from: Number(`${status[0]}00`), to: Number(`${status[0]}99`) };
  if (/^(?:0|[1-5]\d\d)$/.test(status)) return { from: Number(status), to: Number(status) };
  throw new ReportQueryError(`Cannot read status "${status}": expected one such as 429, or 4xx`, "status");
}

function readAmount({ min_cost_usd: text }: RequestTexts): bigint | undefined {
  if (text === undefined) return undefined;
  try {
    const amount = parseUsd(text);
    if (amount < AMOUNT_BOUND) return amount;
    throw new RangeError("Cannot search for an amount this large");
  } catch (error) {
    throw new ReportQueryError(
      `Cannot read min_cost_usd "${text}": expected an amount such as 0.05`,
      "min_cost_usd",
      error,
    );
  }
}

const ORDERS: readonly EntryOrder[] = ["time", "cost", "duration"];

/**
 * Parses a cursor: the order, the value and seq of the last request of the page, and the time of the first page, from
 * which a relative period such as `7d` counts back on every page.
 */
function readCursor(
  { cursor }: RequestTexts,
  order: EntryOrder,
): { at: number; after: NonNullable<EntrySearch["after"]> } | undefined {
  if (cursor === undefined) return undefined;
  const [, name, value = "", ...numbers] = /^([a-z]+)\.(\d{1,19})\.(\d{1,16})\.(\d{1,15})$/.exec(cursor) ?? [];
  const [seq = NaN, at = NaN] = numbers.map(Number);
  if (!Number.isSafeInteger(seq) || BigInt(value) >= AMOUNT_BOUND) {
    throw new ReportQueryError("Cannot read the cursor: expected the `next` of a page", "cursor");
  }
  if (name === order) return { at, after: { value: BigInt(value), seq } };
  throw new ReportQueryError("Cannot use this cursor: it belongs to a search with another order", "cursor");
}
