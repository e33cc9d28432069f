/** Searches for entries of the ledger: filters and orders. */
import type { Entry, KeptEntry, ReasonCode } from "./ledger.ts";

/** An amount in 1e-12 USD. */
type Amount = bigint;

/** Reason codes, and `lost` for requests whose process ended before they did. */
export type SearchedReason = ReasonCode | "lost";

/** Filter of a search. Absent members match everything. */
export interface EntryFilter {
  /** Arrival in Unix milliseconds; `until` is exclusive. */
  since: number;
  until: number;
  keyId?: string;
  group?: string;
  model?: string;
  upstream?: string;
  endpoint?: string;
  /** Lowest and highest status. */
  status?: { from: number; to: number };
  /** True: only failed, refused or lost requests. */
  failed?: true;
  reason?: SearchedReason;
  user?: string;
  tag?: string;
  minCost?: Amount;
  minMs?: number;
}

/** Order of entries: the newest, the most expensive or the longest first. */
export type EntryOrder = "time" | "cost" | "duration";

/** A search for the first entries in an order. */
export interface EntrySearch extends EntryFilter {
  order: EntryOrder;
  /** The last entry of the previous page: its value in this order and its seq. Absent: the first page. */
  after?: { value: bigint; seq: number };
  limit: number;
}

/** Column of each order. */
export const ORDER_COLUMNS: Readonly<Record<EntryOrder, string>> = { time: "at", cost: "cost", duration: "total_ms" };

/** The value of an entry in an order. */
export function orderValue({ at, cost, totalMs }: Pick<Entry, "at" | "cost" | "totalMs">, order: EntryOrder): bigint {
  return order === "cost" ? cost : BigInt(order === "time" ? at : totalMs);
}

/** Compares entries in an order; ties by descending seq. */
export function compareEntries(one: KeptEntry, other: KeptEntry, order: EntryOrder): number {
  const [first, second] = [orderValue(one, order), orderValue(other, order)];
  return first === second ? other.seq - one.seq : first > second ? -1 : 1;
}

/** Values of the search columns. They repeat details, which the check sum covers. */
export function searchedValues({ ending, details }: Pick<Entry, "ending" | "details">): (string | null)[] {
  const reason = ending === "lost" ? "lost" : details?.reason?.code;
  return [reason ?? null, details?.user ?? null, details?.tags === undefined ? null : `,${details.tags.join(",")},`];
}

/** Search columns, in the order of `searchedValues`. */
export const SEARCHED_COLUMNS = ["reason", "end_user", "tags"] as const;

/** Returns whether an entry matches a filter. */
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

/** SQL condition of `failed`: the same text as in the definition of the index. */
export const FAILED_SQL = "ending IN ('failed', 'refused', 'lost')";
