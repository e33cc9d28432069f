/** Whether an answer is read to its end although its client has left, so that the bill is the upstream's. */
import type { Model } from "../catalog/model.ts";
import type { RouteContext } from "../server/router.ts";
import { costsAnything } from "../billing/token_bound.ts";
import type { Meter } from "../billing/meter.ts";
import type { PriceSheet } from "../store/ledger.ts";

/** A request whose client has left. */
export interface Left {
  model: Pick<Model, "on_disconnect">;
  /** What it pays. */
  sheet: Readonly<PriceSheet>;
  /** Whether what was sent tells what the answer cost. */
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
