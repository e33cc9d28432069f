/** The spending of a text request: its limits, the models that its budgets can pay for, and its highest cost. */
import { PARAMETER_NAMES } from "../protocols/canonical/parameter_names.ts";
import type { Prompt } from "../protocols/canonical/types.ts";
import type { Model, Target } from "../catalog/model.ts";
import type { Gateway } from "../gateway.ts";
import { affordableOutput, costBound, estimateTokens, type InputBounds, tokenBound } from "../billing/token_bound.ts";
import { toolCostBound } from "../billing/extras.ts";
import type { Amount } from "../billing/money.ts";
import { costsAnything, sheetFor } from "../billing/price.ts";
import type { BudgetClaim, PriceSheet } from "../store/ledger.ts";
import type { Caller } from "../access/permissions.ts";
import { limitRequestsOf } from "../limits/limit_requests.ts";
import type { LimitRequest } from "../limits/limiter.ts";
import type { Candidate } from "./candidates.ts";

/** The output limit that a budget can pay, for a request without a limit of its own. */
export interface OutputCap {
  /** Its path in the client's body. */
  param: string;
  tokens: number;
}

/** The models that may answer, and the amount to hold. */
export interface SpendingPlan {
  cap: OutputCap | undefined;
  /** Of the others, those that the budgets can pay for. */
  payable: readonly Candidate[];
  maxCost: Amount;
}

/** The limits that a candidate counts against, with the tokens that it is expected to use. */
export function limitRequestsFor({ prompt, model }: Candidate, caller: Caller): LimitRequest[] {
  const { rules, group } = caller;
  if ((rules.limits ?? group.key_limits ?? group.limits ?? model.limits) === undefined) return [];
  const { input, total } = estimateTokens(prompt, model);
  return limitRequestsOf({ caller, model, tokens: { input, output: total - input } });
}

/** Plans the spending. @param available the least that a budget has left; absent: budgets are assumed to suffice */
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
  let maxCost = boundOf(first, { cap, budgets, gateway });
  for (const other of others) {
    const own = boundOf(other, { cap, budgets, gateway });
    if (available !== undefined && own > available) continue;
    payable.push(other);
    if (own > maxCost) maxCost = own;
  }
  return { cap, payable, maxCost };
}

/** Without a budget only whether it can cost anything matters. */
function boundOf(
  { prompt, model, sheet, extraPrices }: Candidate,
  { cap, budgets, gateway }: { cap: OutputCap | undefined; budgets: readonly BudgetClaim[]; gateway: Gateway },
): Amount {
  const tools = toolCostBound(prompt, extraPrices);
  if (budgets.length === 0) {
    const sheetAtContext = dearestSheet({ sheet, extraPrices }, model.context_length);
    return costsAnything(sheetAtContext) || tools > 0n ? 1n : 0n;
  }
  const maxTokens = cap?.tokens ?? atLeast(prompt, model, gateway);
  const tokens = tokenBound(prompt, boundsOf({ prompt, model }, gateway), maxTokens);
  return costBound(tokens, dearestSheet({ sheet, extraPrices }, tokens.input)) + tools;
}

/** The dearest prices that a request with an input of at most this size can pay. */
export function dearestSheet(
  { sheet, extraPrices }: Pick<Candidate, "sheet" | "extraPrices">,
  inputTokens: number,
): Readonly<PriceSheet> {
  return extraPrices === undefined ? sheet : sheetFor(extraPrices.dearest, inputTokens);
}

/** A limit that a target does not take is raised to its minimum, and what that costs is paid. */
function atLeast({ maxTokens, protocol }: Prompt, { targets }: Model, { upstreams }: Gateway): number | undefined {
  if (maxTokens === undefined) return undefined;
  const minOf = (target: Target) => upstreams.get(target.upstream)?.minTokens?.(protocol, target) ?? 0;
  return Math.max(maxTokens, ...targets.map(minOf));
}

function capFor(
  { prompt, model, sheet, extraPrices }: Candidate,
  { available, gateway }: { available: Amount; gateway: Gateway },
): OutputCap | undefined {
  if (prompt.maxTokens !== undefined) return undefined;
  const bound = tokenBound(prompt, boundsOf({ prompt, model }, gateway));
  const sheetAtInput = dearestSheet({ sheet, extraPrices }, bound.input);
  const forTokens = available - toolCostBound(prompt, extraPrices);
  if (costBound(bound, sheetAtInput) <= forTokens) return undefined;
  const tokens = affordableOutput({ available: forTokens, inputTokens: bound.input, sheet: sheetAtInput, n: prompt.n });
  return tokens === undefined ? undefined : { param: PARAMETER_NAMES[prompt.protocol].maxTokens, tokens };
}

/** Bounds of the input: Gemini infers the type of a file at a URL. */
function boundsOf(
  { prompt, model: { context_length, top_provider, targets } }: Pick<Candidate, "prompt" | "model">,
  { upstreams }: Gateway,
): InputBounds {
  const infersTypes = targets.some((target) =>
    upstreams.get(target.upstream)?.protocolFor?.(prompt.protocol, target) === "gemini"
  );
  return { context_length, top_provider, infersTypes };
}
