/** The life of one request, from its arrival to its entry in the ledger. */
import type { Model } from "../catalog/model.ts";
import type { Claim, Standing } from "../limits/limiter.ts";
import type { BilledTokens, BudgetClaim, Ending, MeteredEndpoint, PriceSheet, UsageSource } from "../store/ledger.ts";
import type { Amount } from "./money.ts";

/** What is known of a request when it arrives. */
export interface Arrival {
  /** The gateway's id of the request. */
  id: string;
  keyId: string;
  group: string;
  endpoint: MeteredEndpoint;
}

/** What a request asks for, once it is known. */
export interface Wish {
  model: Model;
  /** What it pays. Pinned: a change of prices while it runs does not touch it. */
  sheet: PriceSheet;
  /** Limits it counts against. */
  claims: readonly Claim[];
  /** Budgets it counts against. */
  budgets: readonly BudgetClaim[];
  /** The most it can cost. */
  most: Amount;
  /** Longest time it can last, in milliseconds. */
  forMs: number;
}

/** What a request that was answered, in whole or in part, is charged for. */
export interface Delivered {
  status: number;
  ending: Extract<
    Ending,
    "end" | "stop_sequence" | "length" | "tool_use" | "refusal" | "pause" | "done" | "partial" | "abandoned"
  >;
  tokens: BilledTokens;
  source: UsageSource;
  images?: number;
}

/**
 * One request on its way. It ends once: with `deliver`, `fail` or `refuse`, whichever is first. Whatever it took of limits
 * and budgets is given back then, and its entry is in the ledger.
 */
export interface Meter {
  /**
   * Takes what the request needs of limits, then of budgets; where one refuses, nothing stays taken.
   * @throws {GatewayError} `limited`
   */
  admit(wish: Wish): Promise<void>;
  /** How the limits it counts against stand; after its end, with its real number of tokens. Empty before `admit`. */
  standings(): Promise<Standing[]>;
  /** An upstream is asked. */
  attempt(upstream: string): void;
  /** The first event or byte of the answer is there. */
  first(): void;
  /**
   * Charges what was delivered. Resolves when the entry is durable, with what the customer pays.
   * @throws {GatewayError} `overloaded` where it cannot be entered: the answer must not be completed then
   */
  deliver(delivered: Delivered): Promise<Amount>;
  /** Ends it without a charge: `failed`, or `refused` where no upstream was asked. Never rejects. */
  fail(status: number): Promise<void>;
  /** Whether it has ended. */
  readonly ended: boolean;
}
