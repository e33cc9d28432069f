/** Charges image requests for the delivered images. */
import type { Delivered } from "../billing/meter.ts";
import { formatUsd } from "../billing/money.ts";
import { failDisconnected, reasonOf, SHUTDOWN } from "../request/request_meter.ts";
import { billedExtras, billedTokens } from "./image_pricing.ts";
import type { ImageBill } from "./image_usage.ts";
import type { StartedImages } from "./image_work.ts";
import { sizeText } from "./size.ts";

/**
 * Charges the delivered images. Without any, the request fails and costs nothing.
 * @returns the cost in USD, once the entry in the ledger is durable
 */
export async function chargeDelivered(
  started: StartedImages,
  end: Partial<Pick<Delivered, "status" | "ending">> = {},
): Promise<string> {
  const { context: { gateway, record }, request, counter, metered: { meter } } = started;
  if (counter.count === 0) {
    gateway.observer.failed(record, counter.failure);
    await meter.fail(200, reasonOf(counter.failure));
    return "0";
  }
  return formatUsd(
    await meter.deliver({
      status: 200,
      ending: counter.count < request.n ? "partial" : "done",
      ...end,
      ...chargeOf(counter.bill, started),
    }),
  );
}

/** Charges a client that disconnected for the images that it received. A request that the shutdown ended is free. */
export async function chargeReceived(started: StartedImages, received: ImageBill): Promise<void> {
  const { meter, interrupted } = started.metered;
  if (interrupted.aborted) return await meter.fail(200, SHUTDOWN);
  if (received.sizes.length === 0) return await failDisconnected(meter);
  await meter.deliver({ status: 200, ending: "client_disconnected", ...chargeOf(received, started) });
}

/** Returns the charge for images. Logs when an upstream delivered another size than requested. */
function chargeOf(
  { usage, sizes }: ImageBill,
  { context: { gateway, requestId }, model, request, headers, inputImagePrice, metered: { meter } }: StartedImages,
): Pick<Delivered, "tokens" | "source" | "images" | "details"> {
  const requested = sizeText(request.size);
  // A stream charges again at its end, without effect; log only the first time.
  if (!meter.ended && sizes.some((size) => size !== requested)) {
    gateway.log({
      level: "warn",
      event: "image_size_mismatch",
      request_id: requestId,
      upstream: headers["x-sluice-upstream"],
      model: model.id,
      asked: requested,
      delivered: sizes.join(", "),
    });
  }
  const extras = billedExtras(usage, inputImagePrice);
  return {
    tokens: billedTokens(usage),
    source: "formula",
    images: sizes.length,
    details: { image_sizes: { asked: requested, delivered: sizes }, ...(extras.length > 0 && { extras }) },
  };
}
