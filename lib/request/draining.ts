/** Decides whether an answer is drained (read to its end) after its client left, so that the upstream's usage can be billed. */
import type { Model } from "../catalog/model.ts";
import type { RouteContext } from "../server/router.ts";
import { costsAnything } from "../billing/token_bound.ts";
import type { Meter } from "../billing/meter.ts";
import type { PriceSheet } from "../store/ledger.ts";

/** A request whose client has left. */
export interface Left {
  model: Pick<Model, "on_disconnect">;
  /** Prices of the request. */
  sheet: Readonly<PriceSheet>;
  /** True if the sent events can be counted. */
  isCountable: () => boolean;
  meter: Pick<Meter, "asked" | "done">;
}

/**
 * Begins to drain a request's upstream where the model wants it, and where not too many are drained already. It counts
 * until its meter has ended. What was not asked, or costs nothing, is not drained.
 * @returns false where the upstream is to be cancelled
 */
export function beginDrain(
  { model: { on_disconnect }, sheet, isCountable, meter }: Left,
  { gateway, requestId }: Pick<RouteContext, "gateway" | "requestId">,
): boolean {
  const wants = on_disconnect === "drain" || (on_disconnect === "auto" && costsAnything(sheet) && !isCountable());
  if (!wants || !meter.asked) return false;
  const { config, drains, log } = gateway;
  const isBegun = drains.begin(meter.done, config.limits.drained_requests);
  if (!isBegun) log({ level: "warn", event: "drain_limit_reached", request_id: requestId });
  return isBegun;
}
