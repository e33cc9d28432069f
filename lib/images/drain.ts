/** Decides whether an image request continues after its client has disconnected. */
import { requireCaller } from "../access/permissions.ts";
import { pricesAt } from "../billing/price.ts";
import { beginDrain } from "../request/client_disconnect.ts";
import type { ImageWork } from "./image_work.ts";

/**
 * Returns a function for the moment when the client disconnects: it returns true if the images are still made. The
 * gateway cannot count the cost of unfinished images itself.
 */
export function drainOf({ context, model, metered: { meter } }: ImageWork): () => boolean {
  const factor = requireCaller(context.caller).group.price_factor;
  const { sheet } = pricesAt(model, { factor, now: meter.entry.arrivedAt });
  let drains = false;
  return () => drains ||= beginDrain({ model, sheet, isCountable: () => false, meter }, context);
}
