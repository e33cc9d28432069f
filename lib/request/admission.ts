/** Whether there is room for a request: limits of rate and concurrency first, then budgets. */
import { requireCaller } from "../access/caller.ts";
import type { Prompt, Protocol } from "../protocols/canonical/types.ts";
import type { Model, Target } from "../catalog/model.ts";
import type { Config } from "../config.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { RouteContext } from "../server/router.ts";
import { limitOwnerOf, limitRequestsOf } from "../limits/limit_requests.ts";
import type { LimitRequest } from "../limits/limiter.ts";
import {
  affordableOutput,
  costsAnything,
  estimateTokens,
  type InputBounds,
  mostCost,
  mostTokens,
} from "../billing/token_bound.ts";
import { mostCostOfTools } from "../billing/extras.ts";
import { budgetClaims } from "../billing/budgets.ts";
import type { Meter, Wish } from "../billing/meter.ts";
import type { Amount } from "../billing/money.ts";
import { costOfExtras, sheetAt } from "../billing/price.ts";
import { LARGE_BODY_BYTES, yieldToEventLoop } from "../scheduler.ts";
import type { BilledExtra, BudgetClaim } from "../store/ledger.ts";
import type { Candidate } from "./candidates.ts";
import { targetMs } from "./targets.ts";

/** The most tokens of an answer, set for a request that named no number: what its budget can pay. */
export interface Cap {
  /** What the client's protocol calls it. */
  param: string;
  tokens: number;
}

/** A candidate that may answer. */
export interface Admitted extends Candidate {
  cap: Cap | undefined;
  /** What it takes of its own limits, where it answers in place of another one; of the first one, they are taken. */
  claims: readonly LimitRequest[];
}

/** Those that may answer, the one that is asked first before the others. */
export type AllAdmitted = [Admitted, ...Admitted[]];

/** What a request is admitted under. */
interface Under {
  meter: Meter;
  context: RouteContext;
  /** Whether all texts of the request are known to be ASCII. */
  isAscii: boolean;
}

/** Messages always name a number. */
const CAP_PARAMS: Readonly<Record<Protocol, string>> = {
  chat: "max_completion_tokens",
  responses: "max_output_tokens",
  messages: "max_tokens",
};

/**
 * Takes what a text request needs of limits and budgets. One that names no most number of tokens could cost as much as the
 * model can say: where a budget cannot pay for that, the number is what the budget can pay.
 *
 * It takes the limits of the model that is asked first. What is held pays for the dearest of the models that may answer:
 * those that the budget cannot pay for are left out. Where there is no room for the first, the next one leads.
 * @returns who may answer; at once where nobody is asked, as with limits in memory and without budgets
 * @throws {GatewayError} `limited`, at once or later
 */
export function admit(candidates: readonly Candidate[], under: Under): AllAdmitted | Promise<AllAdmitted> {
  const [only] = candidates;
  return only !== undefined && candidates.length === 1
    ? admitFirst(only, { ...under, others: [] })
    : admitAny(candidates, under);
}

async function admitAny(candidates: readonly Candidate[], under: Under): Promise<AllAdmitted> {
  let refusal: unknown;
  for (let [first, ...others] = candidates; first !== undefined; [first, ...others] = others) {
    try {
      return await admitFirst(first, { ...under, others });
    } catch (error) {
      if (!(error instanceof GatewayError) || error.kind !== "limited") throw error;
      refusal ??= error;
    }
  }
  throw refusal;
}

function admitFirst(
  first: Candidate,
  under: Under & { others: readonly Candidate[] },
): AllAdmitted | Promise<AllAdmitted> {
  const { others, meter, context } = under;
  const budgets = budgetsOf(context);
  const claims = claimsFor(first, under);
  const { gateway } = context;
  let plan = planFor({ first, others, budgets, gateway });
  const canBeLess = budgets.length > 0 && (others.length > 0 || first.prompt.maxTokens === undefined);
  const { config } = gateway;
  let forMs = longestMs(first.model, config);
  for (const { model } of others) forMs += longestMs(model, config);
  const take = () =>
    meter.admit({
      model: first.model,
      sheet: first.sheet,
      extraPrices: first.extraPrices,
      tier: first.prompt.extras?.tier,
      budgets,
      claims,
      most: plan.most,
      // There is plenty, most of the time: what is left is looked at where that turns out to be wrong.
      within: canBeLess ? (left) => (plan = planFor({ first, others, budgets, gateway, left })).most : undefined,
      forMs,
      whole: !first.prompt.stream,
    });
  // Before anything is taken: nobody else waits for it meanwhile.
  const taking = context.record.bytesIn > LARGE_BODY_BYTES ? yieldToEventLoop().then(take) : take();
  return taking === undefined
    ? admittedBy(plan, { first, under })
    : taking.then(() => admittedBy(plan, { first, under }));
}

function admittedBy(
  { cap, payable }: Plan,
  { first, under }: { first: Candidate; under: Under },
): AllAdmitted {
  const admitted: AllAdmitted = [withCap(first, cap)];
  for (const other of payable) {
    const capped = withCap(other, cap);
    capped.claims = claimsFor(capped, under).filter(isOfModel);
    admitted.push(capped);
  }
  return admitted;
}

/** Who may answer, and what is set aside for that. */
interface Plan {
  cap: Cap | undefined;
  /** Of the others, those that the budgets can pay for. */
  payable: readonly Candidate[];
  most: Amount;
}

/** What budgets pay for where the one with the least has so much left; where nobody asked, everything. */
function planFor(
  { first, others, budgets, gateway, left }: {
    first: Candidate;
    others: readonly Candidate[];
    budgets: readonly BudgetClaim[];
    gateway: Gateway;
    left?: Amount;
  },
): Plan {
  const cap = left === undefined ? undefined : capFor(first, { left, gateway });
  const payable: Candidate[] = [];
  let most = mostOf(first, { cap, budgets, gateway });
  for (const other of others) {
    const own = mostOf(other, { cap, budgets, gateway });
    if (left !== undefined && own > left) continue;
    payable.push(other);
    if (own > most) most = own;
  }
  return { cap, payable, most };
}

/** Without a budget only whether it can cost anything matters. */
function mostOf(
  { prompt, model, sheet, extraPrices }: Candidate,
  { cap, budgets, gateway }: { cap: Cap | undefined; budgets: readonly BudgetClaim[]; gateway: Gateway },
): Amount {
  const dearest = extraPrices?.dearest ?? sheet;
  const tools = mostCostOfTools(prompt, extraPrices);
  if (budgets.length === 0) return costsAnything(dearest) || tools > 0n ? 1n : 0n;
  const maxTokens = cap?.tokens ?? atLeast(prompt, model, gateway);
  const tokens = mostTokens(
    maxTokens === undefined ? prompt : { ...prompt, maxTokens },
    boundsOf({ prompt, model }, gateway),
  );
  return mostCost(tokens, dearest) + tools;
}

/** A limit that a target does not take is raised to its minimum, and what that costs is paid. */
function atLeast({ maxTokens, protocol }: Prompt, { targets }: Model, { upstreams }: Gateway): number | undefined {
  if (maxTokens === undefined) return undefined;
  const leastOf = (target: Target) => upstreams.get(target.upstream)?.leastTokens?.(protocol, target) ?? 0;
  return Math.max(maxTokens, ...targets.map(leastOf));
}

/** A model that cannot write as much needs no cap. */
function withCap({ prompt, model, dropped, sheet, extraPrices }: Candidate, cap: Cap | undefined): Admitted {
  const own = cap !== undefined && cap.tokens < model.top_provider.max_completion_tokens ? cap : undefined;
  return {
    model,
    prompt: own === undefined ? prompt : { ...prompt, maxTokens: own.tokens },
    dropped,
    sheet,
    extraPrices,
    cap: own,
    claims: [],
  };
}

function isOfModel(claim: LimitRequest): boolean {
  return limitOwnerOf(claim).type === "model";
}

function claimsFor({ prompt, model }: Candidate, { context, isAscii }: Under): LimitRequest[] {
  const { input, total } = estimateTokens(prompt, { model, isAscii });
  return limitRequestsOf({ caller: requireCaller(context.caller), model, tokens: { input, output: total - input } });
}

/**
 * Takes what a request for images needs: all of them, at the size asked for.
 * @param now the moment whose prices it pays, in Unix milliseconds
 * @throws {GatewayError} `limited`
 */
export async function admitImages(
  { input, output, extras }: { input: number; output: number; extras: readonly BilledExtra[] },
  { meter, model, context, now }: { meter: Meter; model: Model; context: RouteContext; now: number },
): Promise<void> {
  const wish = wishOf(model, context, now);
  const tokens = { input, output };
  await meter.admit({
    ...wish,
    claims: limitRequestsOf({ caller: requireCaller(context.caller), model, tokens }),
    most: mostCost(tokens, wish.sheet) + costOfExtras(extras, wish.sheet),
  });
}

/** Takes nothing: the answer was charged to the request that it was made for. */
export async function admitReplay(
  { meter, model, context }: { meter: Meter; model: Model; context: RouteContext },
): Promise<void> {
  await meter.admit({ ...wishOf(model, context), claims: [], most: 0n });
}

/** What does not depend on the size of a request. The price is that of a moment, however long the request takes. */
function wishOf(
  model: Model,
  context: RouteContext,
  now = context.gateway.now(),
): Omit<Wish, "claims" | "most"> {
  const { gateway, caller } = context;
  return {
    model,
    sheet: sheetAt(model, { factor: requireCaller(caller).group.price_factor, now }),
    budgets: budgetsOf(context),
    forMs: longestMs(model, gateway.config),
  };
}

function budgetsOf({ gateway, caller }: RouteContext): BudgetClaim[] {
  return budgetClaims(requireCaller(caller), gateway.now());
}

function capFor(
  { prompt, model, sheet, extraPrices }: Candidate,
  { left, gateway }: { left: Amount; gateway: Gateway },
): Cap | undefined {
  if (prompt.maxTokens !== undefined) return undefined;
  const most = mostTokens(prompt, boundsOf({ prompt, model }, gateway));
  const dearest = extraPrices?.dearest ?? sheet;
  const forTokens = left - mostCostOfTools(prompt, extraPrices);
  if (mostCost(most, dearest) <= forTokens) return undefined;
  const tokens = affordableOutput({ left: forTokens, inputTokens: most.input, sheet: dearest, n: prompt.n });
  return tokens === undefined ? undefined : { param: CAP_PARAMS[prompt.protocol], tokens };
}

/** What bounds the input: Gemini finds out for itself what is at an address. */
function boundsOf(
  { prompt, model: { context_length, top_provider, targets } }: Pick<Candidate, "prompt" | "model">,
  { upstreams }: Gateway,
): InputBounds {
  const infersTypes = targets.some((target) =>
    upstreams.get(target.upstream)?.spokenTo?.(prompt.protocol, target) === "gemini"
  );
  return { context_length, top_provider, infersTypes };
}

/** Longest time a request can last: every target may take all of its time. */
function longestMs(model: Model, config: Config): number {
  return model.targets.reduce((sum, target) => sum + targetMs({ model, target }, config), 0);
}
