/** Admission: reserves rate and concurrency limits first, then budgets. */
import { requireCaller } from "../access/caller.ts";
import { GatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";
import { limitOwnerOf, limitRequestsOf } from "../limits/limit_requests.ts";
import type { LimitRequest } from "../limits/limiter.ts";
import { estimateTokens } from "../billing/token_bound.ts";
import { budgetClaims } from "../billing/budgets.ts";
import type { Meter } from "../billing/meter.ts";
import { LARGE_BODY_BYTES, yieldToEventLoop } from "../scheduler.ts";
import { withSettings } from "../protocols/plain_contents.ts";
import type { Candidate } from "./candidates.ts";
import { type OutputCap, planSpending, type SpendingPlan } from "./spending_plan.ts";
import { longestMs } from "./targets.ts";

/** A candidate that may answer. */
export interface Admitted extends Candidate {
  cap: OutputCap | undefined;
  /** Limits to reserve when this alternative answers; those of the first candidate are already reserved. */
  limitRequests: readonly LimitRequest[];
}

/** Admitted candidates, the preferred one first. */
export type AllAdmitted = [Admitted, ...Admitted[]];

/** Context of an admission. */
interface Under {
  meter: Meter;
  context: RouteContext;
}

/**
 * Takes what a text request needs of limits and budgets. One that names no most number of tokens could cost as much as the
 * model can say: where a budget cannot pay for that, the number is what the budget can pay.
 *
 * It takes the limits of the model that is asked first. What is held pays for the dearest of the models that may answer:
 * those that the budget cannot pay for are left out. Where there is no room for the first, the next one leads.
 * @returns the admitted candidates; synchronously with limits in memory and without budgets
 * @throws {GatewayError} `limited`, at once or later
 */
export function admit(candidates: readonly Candidate[], under: Under): AllAdmitted | Promise<AllAdmitted> {
  const [only] = candidates;
  return only !== undefined && candidates.length === 1
    ? admitFirst(only, { ...under, others: [] })
    : admitAny(candidates, (first, others) => admitFirst(first, { ...under, others }));
}

/**
 * Admits a request with the first candidate whose limits and budgets have room for it, and with those after that one.
 * @throws {GatewayError} the first refusal where none has
 */
export async function admitAny<C, A>(
  candidates: readonly C[],
  admitWith: (first: C, others: readonly C[]) => A | Promise<A>,
): Promise<A> {
  let refusal: unknown;
  for (let [first, ...others] = candidates; first !== undefined; [first, ...others] = others) {
    try {
      return await admitWith(first, others);
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
  const budgets = budgetClaims(requireCaller(context.caller), context.gateway.now());
  const limitRequests = limitRequestsFor(first, under);
  const { gateway } = context;
  let plan = planSpending({ first, others, budgets, gateway });
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
      limitRequests,
      most: plan.most,
      // There is plenty, most of the time: what is left is looked at where that turns out to be wrong.
      within: canBeLess ? (left) => (plan = planSpending({ first, others, budgets, gateway, left })).most : undefined,
      forMs,
      whole: !first.prompt.stream,
    });
  // Before any reservation, so that no other request waits for it.
  const taking = context.record.bytesIn > LARGE_BODY_BYTES ? yieldToEventLoop().then(take) : take();
  return taking === undefined
    ? admittedBy(plan, { first, under })
    : taking.then(() => admittedBy(plan, { first, under }));
}

function admittedBy(
  { cap, payable }: SpendingPlan,
  { first, under }: { first: Candidate; under: Under },
): AllAdmitted {
  const admitted: AllAdmitted = [withCap(first, cap)];
  for (const other of payable) {
    const capped = withCap(other, cap);
    capped.limitRequests = limitRequestsFor(capped, under).filter(isOfModel);
    admitted.push(capped);
  }
  return admitted;
}

/** A model that cannot write as much needs no cap. */
function withCap({ prompt, model, dropped, sheet, extraPrices }: Candidate, cap: OutputCap | undefined): Admitted {
  const own = cap !== undefined && cap.tokens < model.top_provider.max_completion_tokens ? cap : undefined;
  return {
    model,
    prompt: own === undefined ? prompt : withSettings(prompt, { maxTokens: own.tokens }),
    dropped,
    sheet,
    extraPrices,
    cap: own,
    limitRequests: [],
  };
}

function isOfModel(limitRequest: LimitRequest): boolean {
  return limitOwnerOf(limitRequest).type === "model";
}

function limitRequestsFor({ prompt, model }: Candidate, { context }: Under): LimitRequest[] {
  const { input, total } = estimateTokens(prompt, model);
  return limitRequestsOf({ caller: requireCaller(context.caller), model, tokens: { input, output: total - input } });
}
