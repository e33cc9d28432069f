/** Whether there is room for a request: limits of rate and concurrency first, then budgets. */
import { requireCaller } from "../access/caller.ts";
import type { Prompt, Protocol } from "../canonical/types.ts";
import type { Model } from "../catalog/model.ts";
import { ownTimeouts } from "../catalog/timeouts.ts";
import type { Config } from "../config.ts";
import type { Gateway } from "../gateway.ts";
import type { RouteContext } from "../http/router.ts";
import { claimsOf } from "../limits/claims.ts";
import { affordableOutput, estimateTokens, mostCost, mostTokens } from "../metering/bound.ts";
import { budgetClaims } from "../metering/budgets.ts";
import type { Meter, Wish } from "../metering/meter.ts";
import { sheetAt } from "../metering/price.ts";

/** The most tokens of an answer, set for a request that named no number: what its budget can pay. */
export interface Cap {
  /** What the client's protocol calls it. */
  param: string;
  tokens: number;
}

/** A prompt that may be answered. */
export interface Admitted {
  prompt: Prompt;
  cap: Cap | undefined;
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
 * @throws {GatewayError} `limited`
 */
export async function admit(
  prompt: Prompt,
  { meter, model, context }: { meter: Meter; model: Model; context: RouteContext },
): Promise<Admitted> {
  const { gateway } = context;
  const wish = wishOf(model, context);
  const cap = wish.budgets.length === 0 ? undefined : await capFor(prompt, { model, wish, gateway });
  const capped = cap === undefined ? prompt : { ...prompt, maxTokens: cap.tokens };
  const { input, total } = estimateTokens(capped, model);
  await meter.admit({
    ...wish,
    claims: claimsOf({ caller: requireCaller(context.caller), model, tokens: { input, output: total - input } }),
    // Without a budget only whether it can cost anything matters.
    most: mostCost(wish.budgets.length === 0 ? { input: 1, output: 1 } : mostTokens(capped, model), wish.sheet),
  });
  return { prompt: capped, cap };
}

/**
 * Takes what a request for pictures needs: all of them, at the size asked for.
 * @throws {GatewayError} `limited`
 */
export async function admitImages(
  { input, output }: { input: number; output: number },
  { meter, model, context }: { meter: Meter; model: Model; context: RouteContext },
): Promise<void> {
  const wish = wishOf(model, context);
  const tokens = { input, output };
  await meter.admit({
    ...wish,
    claims: claimsOf({ caller: requireCaller(context.caller), model, tokens }),
    most: mostCost(tokens, wish.sheet),
  });
}

/** Takes nothing: the answer was charged to the request that it was made for. */
export async function admitReplay(
  { meter, model, context }: { meter: Meter; model: Model; context: RouteContext },
): Promise<void> {
  await meter.admit({ ...wishOf(model, context), claims: [], most: 0n });
}

/** What does not depend on the size of a request. The price is that of this moment, however long the request takes. */
function wishOf(model: Model, { gateway, caller }: RouteContext): Omit<Wish, "claims" | "most"> {
  const now = gateway.now();
  const known = requireCaller(caller);
  return {
    model,
    sheet: sheetAt(model, { factor: known.group.price_factor, now }),
    budgets: budgetClaims(known, now),
    forMs: longestMs(model, gateway.config),
  };
}

async function capFor(
  prompt: Prompt,
  { model, wish: { sheet, budgets }, gateway }: { model: Model; wish: Omit<Wish, "claims" | "most">; gateway: Gateway },
): Promise<Cap | undefined> {
  if (prompt.maxTokens !== undefined) return undefined;
  const most = mostTokens(prompt, model);
  const lefts = await Promise.all(budgets.map((claim) => gateway.ledger.left(claim)));
  const left = lefts.reduce((least, amount) => amount < least ? amount : least);
  if (mostCost(most, sheet) <= left) return undefined;
  const tokens = affordableOutput({ left, inputTokens: most.input, sheet, n: prompt.n });
  return tokens === undefined ? undefined : { param: CAP_PARAMS[prompt.protocol], tokens };
}

/** Longest time a request can last: every target may take all of its time. */
function longestMs(model: Model, { upstreams, images }: Config): number {
  return model.targets.reduce((sum, target) => {
    const row = upstreams[target.upstream];
    if (row === undefined || row.vendor === "embedded") return sum + images.total_ms;
    return sum + (ownTimeouts({ model, target }).total_ms ?? row.timeouts.total_ms);
  }, 0);
}
