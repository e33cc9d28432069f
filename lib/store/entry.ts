/** Types of ledger entries. An entry has the facts of one request and what it cost. */
import type { Amount } from "../billing/money.ts";
import { type FinishReason, PROTOCOLS } from "../protocols/canonical/types.ts";
import type { BudgetRefusal, LimitRefusal, OutageRefusal, PermissionRefusal, TargetRefusal } from "../errors.ts";

/** Endpoints with ledger entries. */
export const METERED_ENDPOINTS = [
  ...PROTOCOLS,
  "images.generations",
  "images.edits",
  "embeddings",
  "rerank",
] as const;

/** An endpoint with ledger entries. */
export type MeteredEndpoint = typeof METERED_ENDPOINTS[number];

/** Billed tokens by price class. Input classes never overlap; `reasoning` is part of `completion`. */
export interface BilledTokens {
  prompt: number;
  input_cache_read: number;
  input_cache_write_5m: number;
  input_cache_write_1h: number;
  completion: number;
  reasoning: number;
}

/** Returns the number of all input tokens, whether cached or not. */
export function inputTokensOf(tokens: Omit<BilledTokens, "completion" | "reasoning">): number {
  return tokens.prompt + tokens.input_cache_read + tokens.input_cache_write_5m + tokens.input_cache_write_1h;
}

/**
 * The prices of an entry: those of the catalog, in USD per token as decimal strings, and the factor of the key's group.
 * Stores keep each sheet once, under a version that entries refer to.
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

/** An item that is billed in addition to the tokens. */
export interface BilledExtra {
  /** Name of the price, as in `pricing`. */
  item: string;
  count: number;
  /** The catalog's price per unit, in USD as a decimal string, before the sheet's factor. */
  price: string;
}

/** Sizes of the images of a request, such as `1024x1024`. */
export interface ImageSizes {
  /** The requested size. */
  asked: string;
  /** One for each billed image; `unknown` if it cannot be read from the image. */
  delivered: readonly string[];
}

/** The context tier of an input: more than `above` and at most `up_to` tokens. */
export interface ContextTier {
  above: number;
  /** Absent: no upper bound. */
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
  /** The client disconnected. */
  "client_disconnected",
  /** The gateway was at its capacity for bodies or images, or a request with the same Idempotency-Key was running. */
  "busy",
  /** The gateway could not serve the request: a store was unreachable, or no target was available. */
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

/** Reason of a refusal or failure with its facts. It contains no text of the client. */
export interface EntryReason {
  code: ReasonCode;
  /** Code of the error sent to the client, such as `context_length_exceeded`. */
  error?: string;
  /** Invalid parameter: a name of the protocols, or `other`. */
  param?: string;
  /** The rule that an invalid request breaks. */
  rule?: string;
  limit?: LimitRefusal;
  budget?: BudgetRefusal;
  permission?: PermissionRefusal;
  /** Targets to which no attempt was made, with reasons. */
  targets?: readonly TargetRefusal[];
  /** The ledger or store that the gateway could not reach or write. */
  outage?: OutageRefusal;
  /** Origin of the key's limit or budget: its own setting, or its group's setting for every key. */
  set_by?: "key" | "group";
}

/** One attempt at a target. */
export interface EntryAttempt {
  upstream: string;
  /** Public id of the model. */
  model: string;
  /**
   * `success`, the failure class as in metrics, `unfit` if the target cannot express the request, or `broken` if its
   * answer broke off after it had begun.
   */
  outcome: string;
  /** Milliseconds until the answer began, broke off, or the attempt failed. */
  ms: number;
  /** HTTP status of the vendor's error. */
  status?: number;
  /** The vendor's code of the error. */
  code?: string;
  /** The time that the vendor asks to wait, in milliseconds. */
  retry_after_ms?: number;
  /** The vendor's message without secrets, or the gateway's if there was no answer; absent if it may quote a prompt. */
  message?: string;
  /** The vendor's id of the request. */
  request_id?: string;
}

/** The use of a conversation's prompt cache by a request: see `EntryDetails.affinity`. */
export type Affinity = "hit" | "miss" | "moved";

/** Facts that few entries have. Stored as JSON text, so a new one needs no migration. */
export interface EntryDetails {
  extras?: readonly BilledExtra[];
  /** The service tier that served the request; absent for the default tier. The price sheet has its prices. */
  service_tier?: string;
  /** The context tier of its prices; absent if the model has no context tiers. */
  context_tier?: ContextTier;
  /** The time window of its prices; absent outside all windows. */
  price_window?: string;
  /** Cost at the upstream by the target's prices, in USD as a decimal string; absent: the target has none. */
  upstream_usd?: string;
  image_sizes?: ImageSizes;
  reason?: EntryReason;
  /** All attempts; absent unless one of them failed. */
  attempts?: readonly EntryAttempt[];
  /** The vendor's id of the request; absent if it sent none, or if `attempts` has it. */
  request_id?: string;
  /** Targets that were passed over because they were unavailable. */
  skipped?: readonly TargetRefusal[];
  /** Members of the request that the last upstream does not support: names of the protocols, or `other`. */
  dropped?: readonly string[];
  /** The output limit that the gateway set, because the budget could not pay for a longer answer. */
  max_tokens?: number;
  /** The client's own output limit, if the answer ended at an output limit. */
  requested_max_tokens?: number;
  /**
   * `hit`: the target that has the conversation in its prompt cache answered. `miss`: no target has it there. `moved`:
   * another target answered. Absent if there was no choice of targets, or no conversation.
   */
  affinity?: Affinity;
  /** The client's name of the end user. */
  user?: string;
  tags?: readonly string[];
  /**
   * First day of the period, if the request counts against a budget of its end user: UTC days since 1970-01-01, 0 for a
   * budget that never resets.
   */
  user_since?: number;
}

/**
 * Source of the token counts: reported by the upstream, counted by the gateway, estimated (images or files in the
 * input), given by a formula (generated images), or none if nothing is charged.
 */
export type UsageSource = "upstream" | "counted" | "estimated" | "formula" | "none";

/** Outcomes of requests: the finish reason of the answer, or how the request ended otherwise. */
export const ENDINGS = [
  ...["end", "stop_sequence", "length", "tool_use", "refusal", "pause"] as const satisfies FinishReason[],
  /** Images: all requested ones, or some of them. */
  ...["done", "partial"] as const,
  /** The client disconnected; the delivered part is charged. */
  "client_disconnected",
  /** An error before or within the answer. Nothing is charged. */
  "failed",
  /** The request ended before any attempt: by a limit, a budget, a permission, as invalid, or by its client. */
  "refused",
  /** The process ended before the request did. Nothing is charged. */
  "lost",
] as const;

/** Outcome of a request. */
export type Ending = typeof ENDINGS[number];

/** The ledger entry of one request. */
export interface Entry {
  /** Id of the request, unique. */
  id: string;
  /** Arrival, Unix time in milliseconds. Its UTC day is the billing day. */
  at: number;
  keyId: string;
  group: string;
  /** Public id of the model; empty if the request named no model that its key may use. */
  model: string;
  /** Name of the upstream of the last attempt; empty if there was none. */
  upstream: string;
  endpoint: MeteredEndpoint;
  /** HTTP status sent to the client; 499 if it disconnected before it got any of the answer, 0 if unknown (`lost`). */
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
  /** Number of requests that were sent to upstreams. */
  attempts: number;
  /** Images delivered; 0 for text. */
  images: number;
  details?: EntryDetails;
}

/** A stored entry. */
export interface KeptEntry extends Entry {
  /** Sequence number from 1, without gaps. */
  seq: number;
  /** Version of the price sheet; absent if nothing is charged. */
  priceVersion?: number;
  /** Checksum over this entry and the checksum of the previous one. */
  check: number;
}
