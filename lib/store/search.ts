/** Filters and orders of searches for ledger entries, and the names by which blocks of entries are found. */
import type { Amount } from "../billing/money.ts";
import { compareValues } from "../compare_values.ts";
import type { Entry, KeptEntry, ReasonCode } from "./ledger.ts";
import { FAILED_ENDINGS } from "./days.ts";
import { searchedValues } from "./entry_row.ts";
import { BLOCK, problemPart } from "./sums.ts";

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

/** Column of `entries` for each order. */
export const ORDER_COLUMNS: Readonly<Record<EntryOrder, string>> = { time: "at", cost: "cost", duration: "total_ms" };

/** Returns the value of an entry in an order. */
export function orderValue({ at, cost, totalMs }: Pick<Entry, "at" | "cost" | "totalMs">, order: EntryOrder): bigint {
  return order === "cost" ? cost : BigInt(order === "time" ? at : totalMs);
}

/** Compares entries in an order. Of equal ones, the one with the higher seq comes first. */
export function compareEntries(one: KeptEntry, other: KeptEntry, order: EntryOrder): number {
  return compareValues(orderValue(other, order), orderValue(one, order)) || other.seq - one.seq;
}

/** Returns whether an entry matches a filter. */
export function matchesFilter(entry: Entry, filter: EntryFilter): boolean {
  const { since, until, keyId, group, model, upstream, endpoint, status, failed, reason, user, tag } = filter;
  const { minCost, minMs } = filter;
  const [ownReason, ownUser, ownTags] = searchedValues(entry);
  const allows = (filtered: unknown, actual: unknown) => filtered === undefined || filtered === actual;
  return entry.at >= since && entry.at < until && allows(keyId, entry.keyId) && allows(group, entry.group) &&
    allows(model, entry.model) && allows(upstream, entry.upstream) && allows(endpoint, entry.endpoint) &&
    allows(reason, ownReason) && allows(user, ownUser) &&
    (status === undefined || entry.status >= status.from && entry.status <= status.to) &&
    (failed === undefined || FAILED_ENDINGS.has(entry.ending)) &&
    (tag === undefined || ownTags?.includes(`,${tag},`) === true) &&
    (minCost === undefined || entry.cost >= minCost) && (minMs === undefined || entry.totalMs >= minMs);
}

/** A name that blocks of entries can have in the table `entry_blocks`. */
export interface BlockName {
  /** A key of `BLOCK_KINDS`, or `tag`. */
  kind: string;
  /** Absent for the kind `problem`, for which the other members describe the names. */
  name?: string;
  status?: { from: number; to: number };
  parts?: readonly string[];
  /** Parts of which the name must have at least one. */
  oneOf?: readonly string[];
}

/**
 * Returns names that a block has if any of its entries passes the filter; the name `all` if the filter implies none.
 */
export function blockNames(filter: EntryFilter): BlockName[] {
  const { group, model, upstream, endpoint, status, failed, reason, tag } = filter;
  const ofTag = tag === undefined ? [] : [{ kind: "tag", name: tag }];
  const isProblem = status !== undefined && !(status.from <= 200 && status.to >= 200);
  if (isProblem || failed !== undefined || reason !== undefined) {
    const facts = Object.entries({ r: reason, g: group, m: model, u: upstream, p: endpoint });
    const parts = facts.flatMap(([fact, value]) => value === undefined ? [] : [problemPart(fact as "r", value)]);
    const oneOf = failed === undefined ? undefined : [...FAILED_ENDINGS].map((ending) => problemPart("e", ending));
    const problem = {
      kind: "problem",
      parts,
      ...(status !== undefined && { status }),
      ...(oneOf !== undefined && { oneOf }),
    };
    return [problem, ...ofTag];
  }
  const names = Object.entries({ group, model, upstream, endpoint }).flatMap(([kind, name]): BlockName[] =>
    name === undefined ? [] : [{ kind, name }]
  );
  return names.length + ofTag.length === 0 ? [{ kind: "all", name: "" }] : [...names, ...ofTag];
}

/** Maximum number of blocks that a search for a key or an end user reads instead of the index of the key or user. */
export const FEW_BLOCKS = 100;

/**
 * Returns whether a search should read blocks of entries instead of an index by time (of a key, of an end user, or of
 * all entries). `few`: only if at most `FEW_BLOCKS` blocks have all of its names; with more of them, the index is
 * faster.
 */
export function readsBlocks(search: EntrySearch): boolean | "few" {
  const hasNames = blockNames(search)[0]?.kind !== "all";
  if (search.keyId !== undefined || search.user !== undefined) return hasNames && "few";
  const isBounded = search.minCost !== undefined || search.minMs !== undefined || search.status !== undefined;
  return hasNames || isBounded || search.order !== "time";
}

/** A block that may have entries of a search. */
export interface BoundedBlock {
  block: number;
  /** Upper bound of the values that entries of the search have in its order. */
  bound: bigint;
}

/**
 * Returns whether a block may have entries that come before the last entry of a page.
 * @param worst undefined: it is not full
 */
export function mayHaveBetter(
  { block, bound }: BoundedBlock,
  worst: KeptEntry | undefined,
  order: EntryOrder,
): boolean {
  if (worst === undefined) return true;
  const value = orderValue(worst, order);
  return bound > value || bound === value && (block + 1) * BLOCK > worst.seq;
}

/** Column of `entry_blocks` with the upper bound for each order. */
export const BOUND_COLUMNS: Readonly<Record<EntryOrder, string>> = {
  time: "last_at",
  cost: "most_cost",
  duration: "most_ms",
};

/** Merges two lists in the order of a search, up to its limit. */
export function mergeEntries(
  entries: readonly KeptEntry[],
  more: readonly KeptEntry[],
  search: EntrySearch,
): KeptEntry[] {
  if (more.length === 0) return [...entries];
  return [...entries, ...more].sort((one, other) => compareEntries(one, other, search.order)).slice(0, search.limit);
}
