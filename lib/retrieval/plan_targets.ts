/** Plans the targets of a request for embeddings or reranking, and decides whether to drain their answers. */
import type { Meter } from "../billing/meter.ts";
import { unitPrices } from "../billing/price.ts";
import type { Gateway } from "../gateway.ts";
import { noTargetLeft } from "../request/candidates.ts";
import { beginDrain } from "../request/client_disconnect.ts";
import { plainFacts } from "../request/targets.ts";
import { type Choice, planChoices } from "../routing/plan.ts";
import type { ProviderPreferences } from "../routing/preferences.ts";
import type { RouteContext } from "../server/router.ts";
import type { AdmittedCandidate } from "./admit.ts";
import type { RetrievalRequest } from "./types.ts";

/**
 * Returns the targets of the candidates, the best first.
 * @throws {GatewayError} `overloaded` if preferences leave none
 */
export function planRetrievalTargets(
  admitted: readonly AdmittedCandidate<RetrievalRequest>[],
  { gateway, preferences, key }: { gateway: Gateway; preferences: ProviderPreferences; key: string },
): Choice[] {
  const choices = planChoices({
    models: admitted.map(({ model, sheet }) => ({ model, price: unitPrices(sheet) })),
    preferences,
    facts: (target) => plainFacts(target, { gateway, key }),
    draw: gateway.random,
  });
  if (choices.length === 0) throw noTargetLeft("provider.only, ignore and order leave no upstream of this model");
  return choices;
}

/**
 * Begins to drain an answer whose client disconnected. Nothing was sent to the client yet, so the answer cannot be
 * billed in part.
 * @returns false if the upstream must be cancelled
 */
export function drainRetrieval(
  { model, sheet, maxCost }: AdmittedCandidate<RetrievalRequest>,
  meter: Meter,
  context: RouteContext,
): boolean {
  let policy = model.on_disconnect;
  if (policy === "auto") policy = maxCost > 0n ? "drain" : "cancel";
  return beginDrain({ model: { on_disconnect: policy }, sheet, isCountable: () => false, meter }, context);
}
