/**
 * The interface of ledgers. A ledger has one entry per request, which is written once and never changed. Sums and
 * balances are computed from the entries. Amounts are in 1e-12 USD.
 */
import type { BilledTokens, Entry, KeptEntry, MeteredEndpoint, PriceSheet } from "./entry.ts";
import type { SumKind } from "./days.ts";
import type { EntrySearch } from "./search.ts";

export * from "./entry.ts";

/** An amount in 1e-12 USD. */
type Amount = Entry["cost"];

/** A budget that a request counts against. */
export interface BudgetClaim {
  /** `user`: one end user of a key. A request has at most one such claim, which comes first. */
  scope: "key" | "group" | "user";
  /** Id of the key, name of the group, or account of the end user, as `userAccount` makes it. */
  id: string;
  /** Amount that may be spent since `since`. */
  budget: Amount;
  /** First day of the period, in UTC days since 1970-01-01; 0 for a budget that never resets. */
  since: number;
  /** First day of the next period; absent for a budget that never resets. Only texts use it. */
  until?: number;
}

/** A key, group or end user, and the first day of a period. */
export type Spender = Pick<BudgetClaim, "scope" | "id" | "since">;

/** Amounts of a key, group or end user in a period. */
export interface Spending {
  /**
   * Costs of the requests that were received since the first day. For an end user, only those of requests that counted
   * against the budget.
   */
  charged: Amount;
  /** Amount held for running requests. */
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

/** Days of the longest budget period, except that of budgets that never reset. */
export const MAX_PERIOD_DAYS = 31;

/** Returns the account of an end user of a key. Key ids have no line breaks, so it is unambiguous. */
export function userAccount(keyId: string, user: string): string {
  return `${keyId}\n${user}`;
}

/** Returns the key and the end user of an account. */
export function readUserAccount(account: string): Pick<UserSum, "keyId" | "user"> {
  const end = account.indexOf("\n");
  return { keyId: account.slice(0, end), user: account.slice(end + 1) };
}

/** An amount held for a running request: the most that it can cost. */
export interface Hold {
  id: string;
  /** Arrival of the request, Unix time in milliseconds. */
  at: number;
  keyId: string;
  group: string;
  model: string;
  endpoint: MeteredEndpoint;
  amount: Amount;
  /** The budgets that must have room for the amount. */
  claims: readonly BudgetClaim[];
  /** Unix time in milliseconds at which it expires unless it is renewed. */
  leaseUntil: number;
}

/** Result of `hold`. A refusal holds nothing. */
export type HoldAnswer =
  | { held: true }
  /** The exceeded budget, what is left of it, and the amount that other open holds hold of it. */
  | { held: false; claim: BudgetClaim; available: Amount; onHold: Amount };

/** Grouping of sums. A request with several tags counts once for each of them. */
export type UsageBy = "key" | "group" | "model" | "upstream" | "day" | "hour" | "minute" | "user" | "tag";

/** Selection and grouping of sums. */
export interface UsageQuery {
  /** Period in Unix milliseconds; `until` is exclusive. */
  since: number;
  until: number;
  by: UsageBy;
  /** A second grouping within the first; absent: there is none. */
  thenBy?: UsageBy;
  /** Filter; absent members match everything. */
  only?: UsageFilter;
}

/** A filter of entries. */
export interface UsageFilter {
  keyId?: string;
  group?: string;
  model?: string;
  user?: string;
  /** One of the tags. */
  tag?: string;
}

/** Figures of entries, added up. */
export interface SumFigures {
  /** All requests, including those without charge. */
  requests: number;
  /** Failed, refused and lost requests. */
  failed: number;
  tokens: BilledTokens;
  images: number;
  cost: Amount;
  overrun: Amount;
}

/** A sum over entries. */
export interface UsageSum extends SumFigures {
  /**
   * Id of the key, name of the group, id of the model, name of the upstream of the last attempt, end user, or tag; or
   * the day, hour or minute (UTC), such as `2026-11-21T09:13`. May be empty.
   */
  name: string;
  /** Name in the second grouping; absent if there is none. */
  thenName?: string;
  /**
   * Savings by prompt caches: cached tokens times the difference to the price of prompt tokens; negative if writing to
   * caches cost more. 0 for requests that were pruned before the store had these sums.
   */
  saved: Amount;
}

/** The sums of a day for one key, group and model. */
export interface DaySum extends SumFigures {
  /** UTC days since 1970-01-01. */
  day: number;
  keyId: string;
  group: string;
  model: string;
}

/** Requests of one upstream for one model on one day, with one price sheet. */
export interface UpstreamDaySum extends SumFigures {
  /** UTC days since 1970-01-01. */
  day: number;
  /** Empty if no attempt was made. */
  upstream: string;
  model: string;
  /** Absent if nothing is charged. */
  sheet?: PriceSheet;
  /** True if the target has prices of its own. */
  hasTargetPrice: boolean;
  /** Cost at the prices of the target; 0 if it has none. */
  targetCost: Amount;
  attempts: number;
  /** Requests whose tokens the gateway counted, estimated or computed. */
  counted: number;
}

/** Progress of the sums that are made from entries in the background. */
export interface SumsHead {
  /** Seq of the last entry in the sums. */
  seq: number;
  /**
   * First day of the sums, in UTC days since 1970-01-01. Entries of earlier days were pruned before the store had these
   * sums.
   */
  firstDay: number;
  /** The first hour of the sums per hour, in hours since 1970-01-01. */
  firstHour: number;
}

/** Summary of the pruned entries. */
export interface LedgerStart {
  /** Last pruned seq; 0 until entries are pruned. */
  seq: number;
  /** Checksum of the last pruned entry, with which the chain of the others begins; 0 until entries are pruned. */
  check: number;
  /** The last day with pruned entries, in UTC days since 1970-01-01; -1 until entries are pruned. */
  day: number;
  /** Later days with pruned entries, whose clock was ahead; absent if there are none. */
  ahead?: readonly number[];
}

/** Entries that one call of `spenders` reads: one or two milliseconds of work in a SQLite file. */
export const SPENDERS_AT_ONCE = 2_000;

/** Keys, groups and end users that a part of the ledger has charged. */
export interface Spenders {
  /** Seq of the last entry that was read. */
  seq: number;
  keys: string[];
  groups: string[];
  /** End users with a budget. `refused`: their budget has refused one of their requests. */
  users: (Pick<UserSum, "keyId" | "user"> & { refused: boolean })[];
}

/** A period in Unix milliseconds of which the first `limit` entries are read; `until` is exclusive. */
export interface DurationSpan {
  since: number;
  until: number;
  limit: number;
}

/** Durations of the requests of a period. */
export interface Durations {
  read: number;
  /** For each answered request, the milliseconds until the first event or byte of its answer, and until its end. */
  answered: { firstMs: number; totalMs: number }[];
}

/** Stores the ledger. */
export interface LedgerStore {
  /**
   * True if requests that cost money may begin, because their entries can be written as far as is known. Absent: they
   * always may.
   */
  readonly isWritable?: boolean;
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
  /**
   * Returns the amounts of each spender, in the given order. The two amounts of one spender are from the same moment.
   */
  spending(spenders: readonly Spender[]): Promise<Spending[]>;
  /** Extends the leases of holds. Expired holds stay expired. */
  renew(ids: readonly string[], leaseUntil: number): Promise<void>;
  /** Ends holds of requests that were refused and get no entries. Ids without a hold have no effect. */
  release(ids: readonly string[]): Promise<void>;
  /**
   * Writes entries, each id once, and ends their holds. The entries are durable when the promise resolves. If it
   * rejects, none was written, unless the disk failed and the state is unknown; then the ledger accepts nothing
   * more. Without entries, it tests whether some could be written.
   * @returns whether each entry is new
   * @throws {RangeError} for an entry with a number or amount that cannot be stored exactly
   */
  append(entries: readonly Entry[]): Promise<boolean[]>;
  /**
   * Voids some of the expired holds and enters their requests as lost, without charge. Returns their ids; none if no
   * hold is left.
   */
  expire(now: number): Promise<string[]>;
  /** Lists the open holds, without expired ones. */
  holds(): Promise<Hold[]>;
  find(id: string): Promise<KeptEntry | undefined>;
  /**
   * Returns the keys, groups and end users that entries after a seq have charged. A call reads at most
   * `SPENDERS_AT_ONCE` entries; if it read as many, there may be more.
   */
  spenders(after: number): Promise<Spenders>;
  /** Reads entries in order of seq, after seq `after`; at most `limit`. */
  entries(from: { after: number; limit: number }): Promise<KeptEntry[]>;
  /**
   * Reads entries in order of arrival, then of seq: those after the position of time `since` and seq `after`, that
   * arrived before `until`. Times are Unix milliseconds. At most `limit`.
   */
  entriesWithin(span: { since: number; after: number; until: number; limit: number }): Promise<KeptEntry[]>;
  /** Reads durations of requests: for each period, those of its first entries. */
  durations(spans: readonly DurationSpan[], signal?: AbortSignal): Promise<Durations[]>;
  /**
   * Adds up the usage of a period. A day whose entries were pruned counts as a whole. Sums by user or tag cover only
   * entries that were not pruned. May reject with the signal's reason if it is aborted.
   */
  usage(query: UsageQuery, signal?: AbortSignal): Promise<UsageSum[]>;
  /**
   * Adds up a period for the costs of upstreams, without days whose entries were pruned. The sums have no order. May
   * reject with the signal's reason if it is aborted.
   */
  upstreamDays(
    query: Pick<UsageQuery, "since" | "until" | "only">,
    signal?: AbortSignal,
  ): Promise<UpstreamDaySum[]>;
  /**
   * Reads the sums of the first day or hour that comes after `after` and has any, by their names as JSON.
   * Returns `undefined` after the last day or hour.
   */
  sumsOfStep(kind: SumKind, after: number): Promise<{ step: number; sums: Map<string, bigint[]> } | undefined>;
  /** Returns how far the sums that are made in the background have come. */
  sumsHead(): Promise<SumsHead>;
  /**
   * Adds some of the next 2,000 entries to the sums that are made in the background, if there are as many. Returns true
   * if there are more to add.
   */
  sumUp(): Promise<boolean>;
  /** Finds the first entries in an order. May reject with the signal's reason if it is aborted. */
  search(search: EntrySearch, signal?: AbortSignal): Promise<KeptEntry[]>;
  /** Returns the seq of the last entry ever written; 0 if there was none. */
  lastSeq(): Promise<number>;
  /**
   * Reads the sums per day from a UTC day (days since 1970-01-01) on, in order of days. With `enough`, it reads only as
   * many whole days as needed for that many sums.
   */
  days(since: number, enough?: number): Promise<DaySum[]>;
  /**
   * Returns the end users with the greatest sums in the period that begins on this day, the greatest first.
   * @param of `keyId`: only end users of this key
   */
  topUsers(of: { since: number; keyId?: string; limit: number }, signal?: AbortSignal): Promise<UserSum[]>;
  /** Reads sums of end users in order of periods, keys and users: at most `limit` after the sum `after`. */
  userSums(from: { after?: Omit<UserSum, "charged">; limit: number }): Promise<UserSum[]>;
  /**
   * Deletes a few of the oldest entries from before a day, and a few sums of end users in periods that ended before it.
   * Sums per day stay. Returns true if more remain.
   * @param today entries of later days, whose clock was ahead, are deleted with the older ones that follow;
   * `Infinity`: each entry is deleted by its own day
   */
  prune(beforeDay: number, today: number): Promise<boolean>;
  /** Returns the summary of the pruned entries. */
  start(): Promise<LedgerStart>;
}
