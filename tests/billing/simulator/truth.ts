/**
 * The true history of each simulated request, recorded by the upstream, the client and the simulation, never by the
 * gateway.
 */
import type { GatewayError } from "../../../lib/errors.ts";
import type { LimitRequest } from "../../../lib/limits/limiter.ts";
import type { Meter } from "../../../lib/billing/meter.ts";
import type { BilledTokens, BudgetClaim, MeteredEndpoint } from "../../../lib/store/ledger.ts";
import type { Customer, Picos, Ware } from "./shop.ts";

/** A call of an upstream. */
export interface Attempt {
  upstream: string;
  outcome: "running" | "failed" | "complete";
}

/** A model that answers. */
export interface AnsweringModel {
  readonly ware: Ware;
  readonly picos: Picos;
}

/** A new request. */
export interface Arriving {
  readonly customer: Customer;
  readonly ware: Ware;
  readonly endpoint: MeteredEndpoint;
  /** Prices at its arrival. */
  readonly picos: Picos;
  /** Time of arrival, Unix milliseconds. */
  readonly at: number;
  /** Alternative models, with their prices at its arrival. */
  readonly others: readonly AnsweringModel[];
  /** The most it can cost, as the gateway believes: at the most expensive model that may answer. */
  readonly most: bigint;
  /** Returns the highest cost with this remainder of a budget; absent: the request needs the whole amount. */
  readonly within?: (left: bigint) => bigint;
  /** It repeats the answer of another request. */
  readonly repeats: boolean;
  /** The whole answer is charged, even if its client disconnects. */
  readonly drains: boolean;
  readonly forMs: number;
  readonly claims: readonly LimitRequest[];
  readonly budgets: readonly BudgetClaim[];
  /** Tokens of its input. */
  readonly prompt: number;
}

/** A request as seen by its client, its upstreams and the simulation. */
export interface Truth extends Arriving {
  readonly id: string;
  readonly meter: Meter;
  /** The gateway process that received it. */
  readonly process: number;
  /** Time at which limits were reserved, by the monotonic clock of its process. */
  takenAt?: number;
  admitted: boolean;
  /** The model that answers, or the last one that was called. */
  answering: AnsweringModel;
  /** The amount last requested to be held. */
  wished: bigint;
  refusal?: GatewayError;
  attempts: Attempt[];
  /** Tokens of the answer that were handed to the client's socket. */
  sent: number;
  /** True if the client got any of the answer. */
  got: boolean;
  /** True if the client has disconnected. */
  left: boolean;
  /** Tokens that the client had received when it disconnected during the answer. */
  sentWhenLeft?: number;
  /** The usage reported at the end of the answer. */
  usage?: BilledTokens;
  /** The usage that the client received at the end of the answer. */
  terminal?: { tokens: BilledTokens; cost: bigint };
  /** True if the client received an error. */
  sawError: boolean;
  /** Number of calls in flight for it; at 0 the request is over. */
  busy: number;
  over: boolean;
}

/** Tokens with only these numbers of input and output. */
export function tokensOf(prompt: number, completion: number): BilledTokens {
  return {
    prompt,
    input_cache_read: 0,
    input_cache_write_5m: 0,
    input_cache_write_1h: 0,
    completion,
    reasoning: 0,
  };
}
