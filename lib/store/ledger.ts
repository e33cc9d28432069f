/**
 * The ledger: one entry per request, written once and never changed. Sums per day and balances are projections of the
 * entries. Amounts are in 1e-12 USD.
 */

import type { EntrySearch } from "./search.ts";
import type { BudgetRefusal, LimitRefusal, PermissionRefusal, TargetRefusal } from "../errors.ts";

/** An amount in 1e-12 USD. The type of `lib/billing/money.ts`, spelled out here as stores know nothing of metering. */
type Amount = bigint;

/** Endpoints whose requests are entered. */
export type MeteredEndpoint =
  | "chat"
  | "responses"
  | "messages"
  | "images.generations"
  | "images.edits"
  | "embeddings"
  | "rerank";

/** Tokens that are billed, by price class. The input classes never overlap; `reasoning` is part of `completion`. */
export interface BilledTokens {
  prompt: number;
  input_cache_read: number;
  input_cache_write_5m: number;
  input_cache_write_1h: number;
  completion: number;
  reasoning: number;
}

/**
 * Prices that an entry was settled at: those of the catalog, in USD per token as decimal strings, and the factor of the
 * key's group. Kept once per version; entries name the version.
 */
export interface PriceSheet {
  model: string;
  factor: string;
  prompt: string;
  completion: string;
  input_cache_read: string;
  input_cache_write_5m: string;
  input_cache_write_1h: string;
}

/** Something that a request is billed beside the tokens of its price sheet. */
export interface BilledExtra {
  /** Name of the price, as in `pricing`. */
  item: string;
  count: number;
  /** The catalog's price of one, in USD as a decimal string. The factor of the sheet applies to it. */
  price: string;
}

/** Sizes of the images of a request, such as `1024x1024`. */
export interface ImageSizes {
  asked: string;
  /** One for each image that is billed; `unknown` where it cannot be read from the image. */
  delivered: readonly string[];
}

/** The part of the price list that the size of an input falls into: more than `above` tokens, and at most `up_to`. */
export interface ContextTier {
  above: number;
  /** Absent: no limit. */
  up_to?: number;
}

/** Codes of the reasons why a request was refused or failed. */
export const REASON_CODES = [
  /** A rate or concurrency limit. */
  "limit",
  "budget",
  "permission",
  /** The gateway's rules about a request; `param` names the parameter. */
  "invalid",
  "model_not_found",
  "body_too_large",
  "media_type",
  /** The client sent its body, or read its answer, too slowly. */
  "client_slow",
  /** The client left. */
  "client_left",
  /** The gateway had no room: request bodies, images, requests with the same Idempotency-Key. */
  "busy",
  /** The gateway could not answer: its store is unreachable, or no target could be asked. */
  "unavailable",
  "shutdown",
  /** The upstream rejected the request itself. */
  "upstream_rejected",
  "upstream_limit",
  "upstream_overloaded",
  "upstream_timeout",
  "upstream_failed",
  "internal",
] as const;

/** Why a request was refused or failed. */
export type ReasonCode = typeof REASON_CODES[number];

/** Reason of a refusal or failure, with its facts and without any text of the client. */
export interface EntryReason {
  code: ReasonCode;
  /** Code of the error that the client got, such as `context_length_exceeded`. */
  error?: string;
  /** Parameter at fault: a name of the protocols, or `other`. */
  param?: string;
  limit?: LimitRefusal;
  budget?: BudgetRefusal;
  permission?: PermissionRefusal;
  /** Targets that could not be asked. */
  targets?: readonly TargetRefusal[];
  /** Origin of the key's limit or budget: its own setting, or its group's for every key. */
  set_by?: "key" | "group";
}

/** One attempt at a target. */
export interface EntryAttempt {
  upstream: string;
  /** Public id of the model. */
  model: string;
  /** `success`, the outcome of a failure as in metrics, or `unfit`: the target cannot express the request. */
  outcome: string;
  /** Milliseconds until the answer began, or the attempt failed. */
  ms: number;
  /** HTTP status of the vendor's error. */
  status?: number;
  /** The vendor's code of the error. */
  code?: string;
  /** The vendor's message without secrets, or the gateway's where there was no answer; absent where it may quote a prompt. */
  message?: string;
  /** The vendor's id of the request. */
  request_id?: string;
}

/** Facts that few entries have. They are kept as JSON text, so a new one needs no migration. */
export interface EntryDetails {
  extras?: readonly BilledExtra[];
  /** The service tier that served it, where that is not the plain one. Its prices are those of the sheet, if it has any. */
  service_tier?: string;
  /** The context tier of its prices, where the model has any. */
  context_tier?: ContextTier;
  /** The time window of its prices, where that is not the usual time. */
  price_window?: string;
  /** Cost at the upstream by the prices of the target, in USD as a decimal string; absent: the target has no prices. */
  upstream_usd?: string;
  image_sizes?: ImageSizes;
  /** Why it was refused or failed. */
  reason?: EntryReason;
  /** Attempts, where one of them failed. */
  attempts?: readonly EntryAttempt[];
  /** The client's name of the person behind the request. */
  user?: string;
  /** The client's tags of the request. */
  tags?: readonly string[];
}

/**
 * Source of the token counts: reported by the upstream, counted by the gateway, estimated (images or files in the
 * input), given by a formula (generated images), or none if nothing is charged.
 */
export type UsageSource = "upstream" | "counted" | "estimated" | "formula" | "none";

/** Outcome of a request: the finish reason of its answer, or one of the others without an answer. */
export type Ending =
  | "end"
  | "stop_sequence"
  | "length"
  | "tool_use"
  | "refusal"
  | "pause"
  /** Images: all that were asked for, or some of them. */
  | "done"
  | "partial"
  /** The client left; the delivered part is charged. */
  | "abandoned"
  /** An error, before or within the answer. Nothing is charged. */
  | "failed"
  /** Refused by a limit, a budget, a permission or as bad input, before any upstream was asked. */
  | "refused"
  /** The process that served it ended before the request did. Nothing is charged. */
  | "lost";

/** The ledger entry of one request. */
export interface Entry {
  /** Id of the request, unique. */
  id: string;
  /** Arrival, Unix time in milliseconds. Its UTC day is the day of the bill. */
  at: number;
  keyId: string;
  group: string;
  /** Public id of the model; empty where the request named none that may be used. */
  model: string;
  /** Name of the upstream that was asked last; empty where none was. */
  upstream: string;
  endpoint: MeteredEndpoint;
  /** HTTP status that the client got; 499 if it left before there was one, 0 if unknown (`lost`). */
  status: number;
  ending: Ending;
  tokens: BilledTokens;
  source: UsageSource;
  /** Absent where nothing is charged. */
  sheet?: PriceSheet;
  /** Amount that the customer pays. */
  cost: Amount;
  /** Amount held for it; 0 where no budget applied. */
  held: Amount;
  /** Cost beyond the held amount, paid by the operator. */
  overrun: Amount;
  /** Milliseconds until the first event or byte of the answer; absent where there was none. */
  firstMs?: number;
  /** Milliseconds until the end. */
  totalMs: number;
  /** Upstreams that were asked. */
  attempts: number;
  /** Images delivered; 0 for text. */
  images: number;
  details?: EntryDetails;
}

/** An entry as it is kept. */
export interface KeptEntry extends Entry {
  /** Place in the order of the ledger, from 1, without gaps. */
  seq: number;
  /** Number of the price sheet's version; absent where there is no sheet. */
  priceVersion?: number;
  /** Check sum over this entry and the check sum of the one before. */
  check: number;
}

/** A budget that a request counts against. */
export interface BudgetClaim {
  /** `key` or `group`. */
  scope: "key" | "group";
  /** Id of the key, or name of the group. */
  id: string;
  /** Amount that may be spent from `since` on. */
  budget: Amount;
  /** First day of the period: days since 1970-01-01, by UTC; 0 for a budget that never starts anew. */
  since: number;
  /** First day of the next period; absent for a budget that never starts anew. For texts only: `since` alone decides. */
  until?: number;
}

/** A key or group, and the first day of a period. */
export type Spender = Pick<BudgetClaim, "scope" | "id" | "since">;

/** Amounts of a key or group in a period. */
export interface Spending {
  /** Costs of its requests that were received from the first day on. */
  charged: Amount;
  /** Set aside for its requests under way. */
  held: Amount;
}

/** The most that a running request can cost, set aside. */
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
  /** Unix time in milliseconds at which it is void, unless it is renewed before. */
  leaseUntil: number;
}

/** Result of a hold request. Nothing is held where it is refused. */
export type HoldAnswer =
  | { held: true }
  /** The exceeded claim, the rest of its budget, and the amount of other open holds. */
  | { held: false; claim: BudgetClaim; left: Amount; onHold: Amount };

/** Grouping of sums. A request counts once for each of its tags. */
export type UsageBy = "key" | "group" | "model" | "day" | "user" | "tag";

/** Selection and grouping of sums. */
export interface UsageQuery {
  /** From one moment up to, not including, another; Unix milliseconds. */
  since: number;
  until: number;
  by: UsageBy;
  /** A second grouping within the first; absent: none. */
  thenBy?: UsageBy;
  /** Only entries with these; absent members do not narrow anything. */
  only?: UsageFilter;
}

/** A part of the entries. */
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
  /** Id of the key, name of the group, id of the model, the day as `2026-11-21`, the end user or a tag; or empty. */
  name: string;
  /** Name in the second grouping; absent: there is none. */
  thenName?: string;
  /** All requests, those without charge included. */
  requests: number;
  /** Those that failed, were refused or lost. */
  failed: number;
  tokens: BilledTokens;
  images: number;
  cost: Amount;
  overrun: Amount;
}

/** The sums of a day for one key, group and model. */
export interface DaySum extends Omit<UsageSum, "name" | "thenName"> {
  /** Days since 1970-01-01, by UTC. */
  day: number;
  keyId: string;
  group: string;
  model: string;
}

/** Summary of the pruned entries. */
export interface LedgerStart {
  /** The seq before the first entry kept; 0 until entries were pruned. */
  seq: number;
  /** Check sum that the chain starts from; 0 until entries were pruned. */
  check: number;
  /**
   * The last day with pruned entries, in days since 1970-01-01: all entries of later days exist. -1: none were pruned.
   */
  day: number;
}

/** Entries that one call of `spenders` goes through: a millisecond or two in a SQLite file. */
export const SPENDERS_AT_ONCE = 2_000;

/** Who was charged in a part of the ledger. */
export interface Spenders {
  /** Place of the last entry that was looked at. */
  seq: number;
  /** Ids. */
  keys: string[];
  /** Names. */
  groups: string[];
}

/** Stores the ledger. */
export interface LedgerStore {
  /** True while requests that cost may begin: their entries can be written, as far as is known; absent: always. */
  readonly takes?: boolean;
  /**
   * The clock of leases, in Unix milliseconds. It is independent of the wall clock and never jumps. Absent: any clock
   * that does not jump while a hold is open.
   */
  readonly clock?: () => number;
  /**
   * Sets the amount aside in all the budgets claimed, or in none. Asked again for a hold that is open, it answers the same.
   * @throws {RangeError} for a request that is in the ledger already, or an amount that cannot be kept
   */
  hold(hold: Hold): Promise<HoldAnswer>;
  /** Returns the rest of a budget: its amount less the charged and held amounts. It may be negative. */
  left(claim: BudgetClaim): Promise<Amount>;
  /** Returns the amounts of each of these, in their order; those of one as of one moment. */
  spending(spenders: readonly Spender[]): Promise<Spending[]>;
  /** Lets holds live until then, or longer if they do already; those that are void stay void. */
  renew(ids: readonly string[], leaseUntil: number): Promise<void>;
  /**
   * Enters requests, each id once, and ends their holds. The entries are durable when it resolves. If it rejects, no
   * entry was made, unless the disk failed at the last moment: then the state is unknown, and the ledger accepts
   * nothing more.
   * @returns for each entry whether it is new
   * @throws {RangeError} for an entry with a number or an amount that cannot be kept exactly
   */
  append(entries: readonly Entry[]): Promise<boolean[]>;
  /** Voids holds whose lease is over, and enters their requests as lost, without charge. Returns the ids. */
  expire(now: number): Promise<string[]>;
  /** Open holds, void ones not included. */
  holds(): Promise<Hold[]>;
  find(id: string): Promise<KeptEntry | undefined>;
  /**
   * The keys and groups that entries after this one charge, a few at a time: there are more where it went through
   * `SPENDERS_AT_ONCE`. Without an entry, only where the ledger ends.
   */
  spenders(from: { after?: number }): Promise<Spenders>;
  /** Entries in their order, from after `seq` on; at most `limit`. */
  entries(from: { after: number; limit: number }): Promise<KeptEntry[]>;
  /**
   * Entries of requests that came in from one moment up to, not including, another (Unix milliseconds), in the order of
   * these moments, and of their places within one; of those of the first moment, the ones after `after`. At most `limit`.
   */
  entriesWithin(span: { since: number; after: number; until: number; limit: number }): Promise<KeptEntry[]>;
  /**
   * Sums over a span of time. By day where single entries are gone; sums that name users or tags are only of the entries
   * that are there.
   * Where the signal is given up, it may end early, with its reason.
   */
  usage(query: UsageQuery, signal?: AbortSignal): Promise<UsageSum[]>;
  /**
   * Finds the first entries of an order, among those that are not pruned. Where the signal is given up, it may end early,
   * with its reason.
   */
  search(search: EntrySearch, signal?: AbortSignal): Promise<KeptEntry[]>;
  /** Place of the last entry that was ever entered; 0 where there was none. */
  lastSeq(): Promise<number>;
  /**
   * The sums per day, as kept, in the order of the days; from `since` on, in days since 1970-01-01. With `enough`, only
   * those of as many whole days as it takes to have that many.
   */
  days(since: number, enough?: number): Promise<DaySum[]>;
  /**
   * Forgets the oldest entries of days before this one, a few at a time; their sums per day stay. True while there is
   * more to do.
   */
  prune(beforeDay: number): Promise<boolean>;
  /** Returns the summary of the pruned entries. */
  start(): Promise<LedgerStart>;
}
