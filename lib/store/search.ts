/** Searches for entries of the ledger: filters and orders. */
import type { Entry, KeptEntry, ReasonCode } from "./ledger.ts";

/** An amount in 1e-12 USD. */
type Amount = bigint;

/** Codes of reasons, and `lost` for requests whose process ended before they did. */
export type SearchedReason = ReasonCode | "lost";

/** Filter of a search. Absent members allow any. */
export interface EntryFilter {
  /** Arrival from one moment up to, not including, another; Unix milliseconds. */
  since: number;
  until: number;
  keyId?: string;
  group?: string;
  model?: string;
  upstream?: string;
  endpoint?: string;
  /** Lowest and highest status. */
  status?: { from: number; to: number };
  /** True: only those that failed, were refused or lost. */
  failed?: true;
  reason?: SearchedReason;
  user?: string;
  tag?: string;
  minCost?: Amount;
  minMs?: number;
}

/** Order of entries: the newest, the dearest or the longest first. */
export type EntryOrder = "time" | "cost" | "duration";

/** A search for the first entries of an order. */
export interface EntrySearch extends EntryFilter {
  order: EntryOrder;
  /** The last entry of the page before: its value in this order and its seq. Absent: the first page. */
  after?: { value: bigint; seq: number };
  limit: number;
}

/** Columns that entries are ordered by. */
export const ORDER_COLUMNS: Readonly<Record<EntryOrder, string>> = { time: "at", cost: "cost", duration: "total_ms" };

/** The value of an entry in an order. */
export function orderValue({ at, cost, totalMs }: Pick<Entry, "at" | "cost" | "totalMs">, order: EntryOrder): bigint {
  return order === "cost" ? cost : BigInt(order === "time" ? at : totalMs);
}

/** Compares entries by an order; entries of the same value by their seq, the latest first. */
export function compareEntries(one: KeptEntry, other: KeptEntry, order: EntryOrder): number {
  const [first, second] = [orderValue(one, order), orderValue(other, order)];
  return first === second ? other.seq - one.seq : first > second ? -1 : 1;
}

/** Values of the columns that only searches read. They repeat details, which the check sum covers. */
export function searchedValues({ ending, details }: Pick<Entry, "ending" | "details">): (string | null)[] {
  const reason = ending === "lost" ? "lost" : details?.reason?.code;
  return [reason ?? null, details?.user ?? null, details?.tags === undefined ? null : `,${details.tags.join(",")},`];
}

/** Columns that only searches read, in the order of `searchedValues`. */
export const SEARCHED_COLUMNS = ["reason", "end_user", "tags"] as const;

/** Returns true if a search finds an entry. */
export function matchesFilter(entry: Entry, filter: EntryFilter): boolean {
  const { since, until, keyId, group, model, upstream, endpoint, status, failed, reason, user, tag } = filter;
  const { minCost, minMs } = filter;
  const [ownReason, ownUser, ownTags] = searchedValues(entry);
  const allows = (wanted: unknown, own: unknown) => wanted === undefined || wanted === own;
  return entry.at >= since && entry.at < until && allows(keyId, entry.keyId) && allows(group, entry.group) &&
    allows(model, entry.model) && allows(upstream, entry.upstream) && allows(endpoint, entry.endpoint) &&
    allows(reason, ownReason) && allows(user, ownUser) &&
    (status === undefined || entry.status >= status.from && entry.status <= status.to) &&
    (failed === undefined || FAILED.includes(entry.ending)) &&
    (tag === undefined || ownTags?.includes(`,${tag},`) === true) &&
    (minCost === undefined || entry.cost >= minCost) && (minMs === undefined || entry.totalMs >= minMs);
}

const FAILED: readonly string[] = ["failed", "refused", "lost"];

/** The endings of `failed`, as SQL: the same text as in the definition of the index. */
export const FAILED_SQL = "ending IN ('failed', 'refused', 'lost')";
