/**
 * The ledger: one entry per request, written once and never changed. Sums per day and balances are projections of the
 * entries. Amounts are in 1e-12 USD.
 */
import type { BilledTokens, Entry, KeptEntry, MeteredEndpoint, PriceSheet } from "./entry.ts";
export type {
  Affinity,
  BilledExtra,
  BilledTokens,
  ContextTier,
  Ending,
  Entry,
  EntryAttempt,
  EntryDetails,
  EntryReason,
  ImageSizes,
  KeptEntry,
  MeteredEndpoint,
  PriceSheet,
  ReasonCode,
  UsageSource,
} from "./entry.ts";
export { REASON_CODES } from "./entry.ts";
import type { SumKind } from "./days.ts";
import type { EntrySearch } from "./search.ts";

/** In 1e-12 USD. */
type Amount = Entry["cost"];

/** A budget that a request counts against. */
export interface BudgetClaim {
  /** `user`: one end user of a key. A request has one such claim at most, which comes before the others. */
  scope: "key" | "group" | "user";
  /** Id of the key, name of the group, or account of the end user, as `userAccount` makes it. */
  id: string;
  /** Amount that may be spent since `since`. */
  budget: Amount;
  /** First day of the period, in UTC days since 1970-01-01; 0 for a budget that never resets. */
  since: number;
  /** First day of the next period; absent for a budget that never resets. Only used in texts. */
  until?: number;
}

/** A key, group or end user, and the first day of a period. */
export type Spender = Pick<BudgetClaim, "scope" | "id" | "since">;

/** Amounts of a key, group or end user in a period. */
export interface Spending {
  /** Costs of its requests received since the first day; of an end user, those that counted against the budget. */
  charged: Amount;
  /** Held for its running requests. */
  held: Amount;
}

/** Costs of an end user of a key that counted against a budget in one period. */
export interface UserSum {
  /** First day of the period. */
  since: number;
  keyId: string;
  /** Empty for requests that name no end user. */
  user: string;
  charged: Amount;
}

/** Names the account of an end user of a key. Ids of keys have no line breaks. */
export function userAccount(keyId: string, user: string): string {
  return `${keyId}\n${user}`;
}

/** Reads the key and the end user of an account. */
export function readUserAccount(account: string): Pick<UserSum, "keyId" | "user"> {
  const end = account.indexOf("\n");
  return { keyId: account.slice(0, end), user: account.slice(end + 1) };
}

/** An amount held for a running request: the most that it can cost. */
export interface Hold {
  /** Id of the request. */
  id: string;
  at: number;
  keyId: string;
  group: string;
  model: string;
  endpoint: MeteredEndpoint;
  amount: Amount;
  claims: readonly BudgetClaim[];
  /** Unix time in milliseconds at which it expires unless it is renewed. */
  leaseUntil: number;
}

/** Result of `hold`. A refusal holds nothing. */
export type HoldAnswer =
  | { held: true }
  /** The exceeded budget, its rest, and the amount of other open holds. */
  | { held: false; claim: BudgetClaim; available: Amount; onHold: Amount };

/** Grouping of sums. A request counts once per tag. */
export type UsageBy = "key" | "group" | "model" | "upstream" | "day" | "hour" | "minute" | "user" | "tag";

/** Selection and grouping of sums. */
export interface UsageQuery {
  /** Period in Unix milliseconds; `until` is exclusive. */
  since: number;
  until: number;
  by: UsageBy;
  /** A second grouping within the first; absent: none. */
  thenBy?: UsageBy;
  /** Filter; absent members match everything. */
  only?: UsageFilter;
}

/** A filter of entries. */
export interface UsageFilter {
  keyId?: string;
  group?: string;
  model?: string;
  /** The end user. */
  user?: string;
  /** One of the tags. */
  tag?: string;
}

/** A sum over entries. */
export interface UsageSum {
  /**
   * Id of the key, name of the group, id of the model, name of the upstream that was asked last, the day, hour or minute
   * by UTC as `2026-11-21T09:13`, the end user or the tag; may be empty.
   */
  name: string;
  /** Name in the second grouping; absent if there is none. */
  thenName?: string;
  /** All requests, including those without charge. */
  requests: number;
  /** Failed, refused and lost requests. */
  failed: number;
  tokens: BilledTokens;
  images: number;
  cost: Amount;
  overrun: Amount;
  /**
   * Savings by prompt caches: cached tokens times the difference to the price of prompt tokens, negative where writing
   * cost more. 0 for requests that were pruned before the store had these sums.
   */
  saved: Amount;
}

/** The sums of a day for one key, group and model. */
export interface DaySum extends Omit<UsageSum, "name" | "thenName" | "saved"> {
  /** UTC days since 1970-01-01. */
  day: number;
  keyId: string;
  group: string;
  model: string;
}

/** Requests of one upstream for one model on one day, with one price sheet. */
export interface UpstreamDaySum extends Omit<UsageSum, "name" | "thenName" | "saved"> {
  /** UTC days since 1970-01-01. */
  day: number;
  /** Empty: no upstream was asked. */
  upstream: string;
  model: string;
  /** Absent: nothing is charged. */
  sheet?: PriceSheet;
  /** True if the target has prices. */
  hasTargetPrice: boolean;
  /** Cost at the prices of the target. */
  targetCost: Amount;
  attempts: number;
  /** Requests whose tokens the gateway counted, estimated or computed. */
  counted: number;
}

/** Progress of the sums that are made from entries in the background. */
export interface SumsHead {
  /** Seq of the last entry in the sums. */
  seq: number;
  /** Their first day, in UTC days since 1970-01-01: entries of earlier days were pruned before the store had these sums. */
  firstDay: number;
  /** The first hour of the sums per hour, in hours since 1970-01-01. */
  firstHour: number;
}

/** Summary of the pruned entries. */
export interface LedgerStart {
  /** Last pruned seq; 0 until entries are pruned. */
  seq: number;
  /** Check sum of the last pruned entry, which the chain starts from; 0 until entries are pruned. */
  check: number;
  /** The last day with pruned entries, in UTC days since 1970-01-01; -1: none were pruned. */
  day: number;
}

/** Entries that one call of `spenders` reads: a millisecond or two in a SQLite file. */
export const SPENDERS_AT_ONCE = 2_000;

/** Keys and groups charged in a part of the ledger. */
export interface Spenders {
  /** Seq of the last entry read. */
  seq: number;
  /** Ids. */
  keys: string[];
  /** Names. */
  groups: string[];
  /** End users with a budget. `refused`: it refused one of their requests. */
  users: (Pick<UserSum, "keyId" | "user"> & { refused: boolean })[];
}

/** A period in Unix milliseconds whose first entries are read; `until` is exclusive. */
export interface DurationSpan {
  since: number;
  until: number;
  limit: number;
}

/** Durations of the requests of a period. */
export interface Durations {
  /** Entries that were read. */
  read: number;
  /** Milliseconds until the first event or byte of an answer, and until its end, of those that were answered. */
  answered: { firstMs: number; totalMs: number }[];
}

/** Stores the ledger. */
export interface LedgerStore {
  /**
   * True while requests that cost money may begin, because their entries can be written as far as is known; absent:
   * always.
   */
  readonly takes?: boolean;
  /**
   * The clock of leases, in Unix milliseconds, unaffected by changes of the wall clock. Absent: the caller uses a clock
   * that does not jump while a hold is open.
   */
  readonly clock?: () => number;
  /**
   * Holds the amount in all of the request's budgets, or in none. Repeated for an open hold, it returns the same
   * answer.
   * @throws {RangeError} if the request is in the ledger already, or the amount cannot be stored
   */
  hold(hold: Hold): Promise<HoldAnswer>;
  /** Returns the rest of a budget: its amount minus charges and holds. May be negative. */
  readAvailable(claim: BudgetClaim): Promise<Amount>;
  /** Returns the amounts of each spender, in the given order. Charged and held amount of one spender are consistent. */
  spending(spenders: readonly Spender[]): Promise<Spending[]>;
  /** Extends the leases of holds. Expired holds stay expired. */
  renew(ids: readonly string[], leaseUntil: number): Promise<void>;
  /**
   * Writes entries, each id once, and ends their holds. The entries are durable when it resolves. If it rejects, none
   * was written, unless a disk failure left the state unknown; the ledger then accepts nothing more.
   * @returns whether each entry is new
   * @throws {RangeError} for an entry with a number or amount that cannot be stored exactly
   */
  append(entries: readonly Entry[]): Promise<boolean[]>;
  /** Voids expired holds and enters their requests as lost, without charge. Returns their ids. */
  expire(now: number): Promise<string[]>;
  /** Open holds, without expired ones. */
  holds(): Promise<Hold[]>;
  find(id: string): Promise<KeptEntry | undefined>;
  /**
   * Keys, groups and end users charged by entries after a seq, a few at a time: more remain if it read `SPENDERS_AT_ONCE`. Without
   * `after` it returns only the end of the ledger.
   */
  spenders(from: { after?: number }): Promise<Spenders>;
  /** Entries in order, after seq `after`; at most `limit`. */
  entries(from: { after: number; limit: number }): Promise<KeptEntry[]>;
  /**
   * Entries by arrival time, then seq, from `since` (with seq after `after`) up to `until`, exclusive; Unix
   * milliseconds. At most `limit`.
   */
  entriesWithin(span: { since: number; after: number; until: number; limit: number }): Promise<KeptEntry[]>;
  /** Durations of requests: for each period, those of its first entries. */
  durations(spans: readonly DurationSpan[], signal?: AbortSignal): Promise<Durations[]>;
  /**
   * Sums over a period, by whole days where single entries were pruned; sums by user or tag cover only unpruned
   * entries. May reject with the signal's reason if it is aborted.
   */
  usage(query: UsageQuery, signal?: AbortSignal): Promise<UsageSum[]>;
  /**
   * Sums over a period for the costs of upstreams, of unpruned days, in no order. May reject with the signal's reason if
   * it is aborted.
   */
  upstreamDays(
    query: Pick<UsageQuery, "since" | "until" | "only">,
    signal?: AbortSignal,
  ): Promise<UpstreamDaySum[]>;
  /**
   * The sums of the first day or hour after another one, by their names as JSON, from one snapshot; `undefined` behind the
   * last one.
   */
  sumsOfStep(kind: SumKind, after: number): Promise<{ step: number; sums: Map<string, bigint[]> } | undefined>;
  /** Returns the place that the sums have reached. */
  sumsHead(): Promise<SumsHead>;
  /**
   * Brings the sums a step closer to the last entry: those of the next 2,000 entries, if there are as many. Returns true
   * if more of them remain.
   */
  sumUp(): Promise<boolean>;
  /** Finds the first unpruned entries in an order. May reject with the signal's reason if it is aborted. */
  search(search: EntrySearch, signal?: AbortSignal): Promise<KeptEntry[]>;
  /** Seq of the last entry ever written; 0 if there was none. */
  lastSeq(): Promise<number>;
  /**
   * The stored sums per day since a UTC day (days since 1970-01-01), in order of days. With `maxRows`, only as many
   * whole days as needed for that many sums.
   */
  days(since: number, maxRows?: number): Promise<DaySum[]>;
  /**
   * Returns the end users with the greatest sums in the period that begins on this day, the greatest first.
   * @param of `keyId`: only those of this key
   */
  topUsers(of: { since: number; keyId?: string; limit: number }, signal?: AbortSignal): Promise<UserSum[]>;
  /** Sums of end users in the order of periods, keys and users; at most `limit` after this one. */
  userSums(from: { after?: Omit<UserSum, "charged">; limit: number }): Promise<UserSum[]>;
  /**
   * Deletes a few of the oldest entries before this day, and a few sums of end users in periods that ended before it; sums
   * per day stay. Returns true if more remain.
   */
  prune(beforeDay: number): Promise<boolean>;
  /** Returns the summary of the pruned entries. */
  start(): Promise<LedgerStart>;
}
