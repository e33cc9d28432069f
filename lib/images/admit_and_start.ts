/** Admits an image request and starts it at a target. */
import { requireCaller } from "../access/permissions.ts";
import type { Model } from "../catalog/model.ts";
import { pricingAt } from "../catalog/catalog.ts";
import { loadTokenCounter } from "../o200k/mod.ts";
import { memberNames } from "../observe/request_record.ts";
import { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import { admitImages } from "./admit_images.ts";
import type { RouteContext } from "../server/router.ts";
import { drainOf } from "./drain.ts";
import { billedExtras, maxUsageOf } from "./image_pricing.ts";
import { ImageUsageCounter } from "./image_usage.ts";
import type { ImageWork, StartedImages } from "./image_work.ts";
import { countPixels } from "./pixel_limits.ts";
import { startImages, watchRequest } from "./start_images.ts";
import type { ImageRequest } from "./types.ts";

/** Returns whether a target of the model makes images in this process. */
export function makesImagesHere({ targets }: Model, { imageUpstreams }: RouteContext["gateway"]): boolean {
  return targets.some(({ upstream }) => imageUpstreams.get(upstream)?.isLocal);
}

/**
 * Reserves limits, a budget hold and memory for a request, and starts it at the first target that accepts it.
 * @param client aborts when the client disconnects
 * @throws {GatewayError} a refusal, or the error of the last target
 */
export async function admitAndStart(work: ImageWork, client: AbortSignal): Promise<StartedImages> {
  const { context, model, request, metered: { meter, interrupted } } = work;
  const { gateway } = context;
  const { keyId } = requireCaller(context.caller);
  const drains = drainOf(work);
  const hasDisconnected = () => client.aborted;
  const watch = watchRequest({ client, drains, interrupted, totalMs: gateway.config.images.total_ms });
  let releasePixels = () => {};
  try {
    const pixels = makesImagesHere(model, gateway) ? countPixels(request, gateway.config) : undefined;
    const promptTokens = await (await loadTokenCounter()).countLong(request.prompt);
    const { input_image: inputImagePrice } = pricingAt(model, meter.entry.arrivedAt);
    const countOptions = { promptTokens, chargesInputImages: request.kind === "edit" && inputImagePrice !== undefined };
    const maxUsage = maxUsageOf(request, countOptions);
    await admitImages({ ...maxUsage, extras: billedExtras(maxUsage, inputImagePrice) }, { meter, model, context });
    if (pixels !== undefined) releasePixels = await gateway.pixels.enter(watch.signal, { size: pixels, keyId });
    const counter = new ImageUsageCounter(request, countOptions);
    const dropped = new UnsupportedParameters();
    const { feed, headers } = await startImages({
      gateway,
      requestId: context.requestId,
      key: keyId,
      request: withoutPngQuality(request, dropped),
      model,
      dropped,
      signal: watch.signal,
      hasDisconnected,
      meter,
    });
    meter.entry.dropped = memberNames(dropped.names);
    return { ...work, feed, headers, counter, dropped, watch, drains, hasDisconnected, inputImagePrice, releasePixels };
  } catch (error) {
    releasePixels();
    watch.stop();
    throw error;
  }
}

/**
 * Removes `output_compression` from a request for PNG, which is lossless. A quality below 100 is reported as dropped.
 */
function withoutPngQuality(request: ImageRequest, dropped: UnsupportedParameters): ImageRequest {
  const { compression, ...others } = request;
  if (request.format !== "png" || compression === undefined) return request;
  if (compression < 100) dropped.add("output_compression");
  return others;
}
