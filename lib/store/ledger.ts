/**
 * The ledger: one entry per request, written once and never changed. Sums per day and balances are projections of the
 * entries. Amounts are in 1e-12 USD.
 */

import type { EntrySearch } from "./search.ts";
import type { BudgetRefusal, LimitRefusal, PermissionRefusal, TargetRefusal } from "../errors.ts";

/**
 * An amount in 1e-12 USD: the type of `lib/billing/money.ts`, repeated here because stores do not depend on billing.
 */
type Amount = bigint;

/** Endpoints with ledger entries. */
export type MeteredEndpoint =
  | "chat"
  | "responses"
  | "messages"
  | "images.generations"
  | "images.edits"
  | "embeddings"
  | "rerank";

/** Billed tokens by price class. Input classes never overlap; `reasoning` is part of `completion`. */
export interface BilledTokens {
  prompt: number;
  input_cache_read: number;
  input_cache_write_5m: number;
  input_cache_write_1h: number;
  completion: number;
  reasoning: number;
}

/**
 * The prices of an entry: the catalog's, in USD per token as decimal strings, and the factor of the key's group. Stored
 * once per version, which entries refer to.
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

/** An item billed in addition to the tokens. */
export interface BilledExtra {
  /** Name of the price, as in `pricing`. */
  item: string;
  count: number;
  /** The catalog's price per unit, in USD as a decimal string, before the sheet's factor. */
  price: string;
}

/** Sizes of the images of a request, such as `1024x1024`. */
export interface ImageSizes {
  asked: string;
  /** One for each billed image; `unknown` if it cannot be read from the image. */
  delivered: readonly string[];
}

/** The context tier of an input: more than `above` and at most `up_to` tokens. */
export interface ContextTier {
  above: number;
  /** Absent: no limit. */
  up_to?: number;
}

/** Codes of the reasons for refused and failed requests. */
export const REASON_CODES = [
  /** A rate or concurrency limit. */
  "limit",
  "budget",
  "permission",
  /** The gateway rejected the request; `param` names the parameter. */
  "invalid",
  "model_not_found",
  "body_too_large",
  "media_type",
  /** The client sent its body or read its answer too slowly. */
  "client_slow",
  /** The client left. */
  "client_left",
  /** The gateway had no capacity: request bodies, images, requests with the same Idempotency-Key. */
  "busy",
  /** The gateway could not answer: its store is unreachable, or no target was available. */
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

/** Reason code of a refused or failed request. */
export type ReasonCode = typeof REASON_CODES[number];

/** Reason of a refusal or failure, with its facts but no text of the client. */
export interface EntryReason {
  code: ReasonCode;
  /** Code of the error sent to the client, such as `context_length_exceeded`. */
  error?: string;
  /** Invalid parameter: a name of the protocols, or `other`. */
  param?: string;
  limit?: LimitRefusal;
  budget?: BudgetRefusal;
  permission?: PermissionRefusal;
  /** Targets that were not asked, with reasons. */
  targets?: readonly TargetRefusal[];
  /** Origin of the key's limit or budget: its own setting, or its group's setting for every key. */
  set_by?: "key" | "group";
}

/** One attempt at a target. */
export interface EntryAttempt {
  upstream: string;
  /** Public id of the model. */
  model: string;
  /** `success`, the failure class as in metrics, or `unfit`: the target cannot express the request. */
  outcome: string;
  /** Milliseconds until the answer began or the attempt failed. */
  ms: number;
  /** HTTP status of the vendor's error. */
  status?: number;
  /** The vendor's code of the error. */
  code?: string;
  /** The vendor's message without secrets, or the gateway's if there was no answer; absent if it may quote a prompt. */
  message?: string;
  /** The vendor's id of the request. */
  request_id?: string;
}

/** How a request met the prompt cache of its conversation. */
export type Affinity = "hit" | "miss" | "moved";

/** Facts that few entries have. Stored as JSON text, so a new one needs no migration. */
export interface EntryDetails {
  extras?: readonly BilledExtra[];
  /** The service tier that served it; absent for the default one. The prices are those of the sheet. */
  service_tier?: string;
  /** The context tier of its prices; absent if the model has none. */
  context_tier?: ContextTier;
  /** The time window of its prices; absent outside all windows. */
  price_window?: string;
  /** Cost at the upstream by the target's prices, in USD as a decimal string; absent: the target has none. */
  upstream_usd?: string;
  image_sizes?: ImageSizes;
  /** Reason of a refusal or failure. */
  reason?: EntryReason;
  /** All attempts; absent unless one of them failed. */
  attempts?: readonly EntryAttempt[];
  /** Members of the request that the last upstream does not support: names of the protocols, or `other`. */
  dropped?: readonly string[];
  /**
   * Whether the target that has the conversation in its prompt cache answered: it did, no target had it, or another one
   * answered. Absent where there was no choice of targets, or no conversation.
   */
  affinity?: Affinity;
  /** The client's name of the end user. */
  user?: string;
  /** The client's tags. */
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
  /** Images: all requested ones, or some of them. */
  | "done"
  | "partial"
  /** The client left; the delivered part is charged. */
  | "abandoned"
  /** An error before or within the answer. Nothing is charged. */
  | "failed"
  /** Refused by a limit, budget, permission or as invalid, before any upstream was asked. */
  | "refused"
  /** The process ended before the request did. Nothing is charged. */
  | "lost";

/** The ledger entry of one request. */
export interface Entry {
  /** Id of the request, unique. */
  id: string;
  /** Arrival, Unix time in milliseconds. Its UTC day is the billing day. */
  at: number;
  keyId: string;
  group: string;
  /** Public id of the model; empty if the request named no permitted one. */
  model: string;
  /** Name of the last upstream asked; empty if there was none. */
  upstream: string;
  endpoint: MeteredEndpoint;
  /** HTTP status sent to the client; 499 if it left before there was one, 0 if unknown (`lost`). */
  status: number;
  ending: Ending;
  tokens: BilledTokens;
  source: UsageSource;
  /** Absent if nothing is charged. */
  sheet?: PriceSheet;
  /** Amount that the customer pays. */
  cost: Amount;
  /** Amount held for it; 0 if no budget applied. */
  held: Amount;
  /** Cost beyond the held amount, paid by the operator. */
  overrun: Amount;
  /** Milliseconds until the first event or byte of the answer; absent if there was none. */
  firstMs?: number;
  /** Milliseconds until the end. */
  totalMs: number;
  /** Number of upstream attempts. */
  attempts: number;
  /** Images delivered; 0 for text. */
  images: number;
  details?: EntryDetails;
}

/** A stored entry. */
export interface KeptEntry extends Entry {
  /** Sequence number from 1, without gaps. */
  seq: number;
  /** Version of the price sheet; absent if there is no sheet. */
  priceVersion?: number;
  /** Check sum of this entry and the previous check sum. */
  check: number;
}

/** A budget that a request counts against. */
export interface BudgetClaim {
  /** `key` or `group`. */
  scope: "key" | "group";
  /** Id of the key, or name of the group. */
  id: string;
  /** Amount that may be spent since `since`. */
  budget: Amount;
  /** First day of the period, in UTC days since 1970-01-01; 0 for a budget that never resets. */
  since: number;
  /** First day of the next period; absent for a budget that never resets. Only used in texts. */
  until?: number;
}

/** A key or group, and the first day of a period. */
export type Spender = Pick<BudgetClaim, "scope" | "id" | "since">;

/** Amounts of a key or group in a period. */
export interface Spending {
  /** Costs of its requests received since the first day. */
  charged: Amount;
  /** Held for its running requests. */
  held: Amount;
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
  | { held: false; claim: BudgetClaim; left: Amount; onHold: Amount };

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
}

/** The sums of a day for one key, group and model. */
export interface DaySum extends Omit<UsageSum, "name" | "thenName"> {
  /** UTC days since 1970-01-01. */
  day: number;
  keyId: string;
  group: string;
  model: string;
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
  left(claim: BudgetClaim): Promise<Amount>;
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
   * Keys and groups charged by entries after a seq, a few at a time: more remain if it read `SPENDERS_AT_ONCE`. Without
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
  /**
   * Sums over a period, by whole days where single entries were pruned; sums by user or tag cover only unpruned
   * entries. May reject with the signal's reason if it is aborted.
   */
  usage(query: UsageQuery, signal?: AbortSignal): Promise<UsageSum[]>;
  /** Finds the first unpruned entries in an order. May reject with the signal's reason if it is aborted. */
  search(search: EntrySearch, signal?: AbortSignal): Promise<KeptEntry[]>;
  /** Seq of the last entry ever written; 0 if there was none. */
  lastSeq(): Promise<number>;
  /**
   * The stored sums per day since a UTC day (days since 1970-01-01), in order of days. With `enough`, only as many
   * whole days as needed for that many sums.
   */
  days(since: number, enough?: number): Promise<DaySum[]>;
  /** Deletes a few of the oldest entries before this day; their sums per day stay. Returns true if more remain. */
  prune(beforeDay: number): Promise<boolean>;
  /** Returns the summary of the pruned entries. */
  start(): Promise<LedgerStart>;
}
