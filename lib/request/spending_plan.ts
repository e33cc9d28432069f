/** Plans the spending of a text request: its limits, the models that its budgets can pay for, and its highest cost. */
import { PARAMETER_NAMES } from "../protocols/canonical/parameter_names.ts";
import type { Prompt } from "../protocols/canonical/types.ts";
import type { Model, Target } from "../catalog/model.ts";
import type { Gateway } from "../gateway.ts";
import { affordableOutput, estimateTokens, type InputBounds, tokenBound } from "../billing/token_bound.ts";
import { toolCostBound } from "../billing/extras.ts";
import type { Amount } from "../billing/money.ts";
import { costBound, costsAnything, sheetFor } from "../billing/price.ts";
import type { BudgetClaim, PriceSheet } from "../store/ledger.ts";
import type { Caller } from "../access/permissions.ts";
import { limitRequestsOf } from "../limits/limit_requests.ts";
import type { LimitRequest } from "../limits/limiter.ts";
import type { Candidate } from "./candidates.ts";

/** The output limit that a budget can pay for, set on a request that has no output limit. */
export interface OutputCap {
  /** Path of the limit in the client's body, with dots. */
  param: string;
  tokens: number;
}

/** The models that may answer, and the amount to hold. */
export interface SpendingPlan {
  /** Undefined if the budgets can pay for the longest answer of the first model. */
  cap: OutputCap | undefined;
  /** The alternatives that the budgets can pay for. */
  payable: readonly Candidate[];
  /** The highest possible cost of the first model and the payable alternatives: the amount to hold. */
  maxCost: Amount;
}

/** Returns the limits that a candidate counts against, with the tokens that it is expected to use. */
export function limitRequestsFor({ prompt, model }: Candidate, caller: Caller): LimitRequest[] {
  const { rules, group } = caller;
  if ((rules.limits ?? group.key_limits ?? group.limits ?? model.limits) === undefined) return [];
  const { input, total } = estimateTokens(prompt, model);
  return limitRequestsOf({ caller, model, tokens: { input, output: total - input } });
}

/** Plans the spending. `available` is the smallest remainder of the budgets; without it they are assumed to suffice. */
export function planSpending(
  { first, others, budgets, gateway, available }: {
    first: Candidate;
    others: readonly Candidate[];
    budgets: readonly BudgetClaim[];
    gateway: Gateway;
    available?: Amount;
  },
): SpendingPlan {
  const cap = available === undefined ? undefined : capFor(first, { available, gateway });
  const payable: Candidate[] = [];
  let maxCost = highestCost(first, { cap, budgets, gateway });
  for (const other of others) {
    const cost = highestCost(other, { cap, budgets, gateway });
    if (available !== undefined && cost > available) continue;
    payable.push(other);
    if (cost > maxCost) maxCost = cost;
  }
  return { cap, payable, maxCost };
}

/** Returns the highest cost of a candidate. Without budgets it only says whether it costs anything: 1 or 0. */
function highestCost(
  { prompt, model, sheet, extraPrices }: Candidate,
  { cap, budgets, gateway }: { cap: OutputCap | undefined; budgets: readonly BudgetClaim[]; gateway: Gateway },
): Amount {
  const toolCost = toolCostBound(prompt, extraPrices);
  if (budgets.length === 0) {
    const dearest = dearestSheet({ sheet, extraPrices }, model.context_length);
    return costsAnything(dearest) || toolCost > 0n ? 1n : 0n;
  }
  const maxTokens = cap?.tokens ?? raisedLimit(prompt, model, gateway);
  const tokens = tokenBound(prompt, boundsOf({ prompt, model }, gateway), maxTokens);
  return costBound(tokens, dearestSheet({ sheet, extraPrices }, tokens.input)) + toolCost;
}

/** Returns the highest prices that a request with at most this many input tokens can have to pay. */
export function dearestSheet(
  { sheet, extraPrices }: Pick<Candidate, "sheet" | "extraPrices">,
  inputTokens: number,
): Readonly<PriceSheet> {
  return extraPrices === undefined ? sheet : sheetFor(extraPrices.dearest, inputTokens);
}

/**
 * Returns the output limit, raised to the highest minimum of the model's targets. The client pays for the raised limit.
 */
function raisedLimit({ maxTokens, protocol }: Prompt, { targets }: Model, { upstreams }: Gateway): number | undefined {
  if (maxTokens === undefined) return undefined;
  const minimumOf = (target: Target) => upstreams.get(target.upstream)?.minTokens?.(protocol, target) ?? 0;
  return Math.max(maxTokens, ...targets.map(minimumOf));
}

function capFor(
  { prompt, model, sheet, extraPrices }: Candidate,
  { available, gateway }: { available: Amount; gateway: Gateway },
): OutputCap | undefined {
  if (prompt.maxTokens !== undefined) return undefined;
  const bound = tokenBound(prompt, boundsOf({ prompt, model }, gateway));
  const dearest = dearestSheet({ sheet, extraPrices }, bound.input);
  const forTokens = available - toolCostBound(prompt, extraPrices);
  if (costBound(bound, dearest) <= forTokens) return undefined;
  const tokens = affordableOutput({ available: forTokens, inputTokens: bound.input, sheet: dearest, n: prompt.n });
  return tokens === undefined ? undefined : { param: PARAMETER_NAMES[prompt.protocol].maxTokens, tokens };
}

/** Returns the facts that bound the input of a prompt. Gemini infers the type of a file at a URL. */
function boundsOf(
  { prompt, model: { context_length, top_provider, targets } }: Pick<Candidate, "prompt" | "model">,
  { upstreams }: Gateway,
): InputBounds {
  const infersTypes = targets.some((target) =>
    upstreams.get(target.upstream)?.protocolFor?.(prompt.protocol, target) === "gemini"
  );
  return { context_length, top_provider, infersTypes };
}
