/** Decides whether an image request continues after its client has disconnected. */
import { requireCaller } from "../access/permissions.ts";
import { pricesAt } from "../billing/price.ts";
import { beginDrain } from "../request/client_disconnect.ts";
import type { ImageWork } from "./image_work.ts";

/**
 * Returns a function that decides whether work continues after the client disconnected: an image has no cost before it
 * exists.
 */
export function drainOf({ context, model, metered: { meter } }: ImageWork): () => boolean {
  const factor = requireCaller(context.caller).group.price_factor;
  const { sheet } = pricesAt(model, { factor, now: context.gateway.now() });
  let drains = false;
  return () => drains ||= beginDrain({ model, sheet, isCountable: () => false, meter }, context);
}
