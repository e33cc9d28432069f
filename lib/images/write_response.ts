/** Writes the response to an image request, as a whole or as a stream. */
import { toGatewayError } from "../errors.ts";
import { droppedHeader } from "../request/write_response.ts";
import { CLIENT_DISCONNECTED, failDisconnected, reasonOf, SHUTDOWN } from "../request/request_meter.ts";
import { streamHeaders } from "../server/json_response.ts";
import type { FinishedImage, ImageBill, ImageUsageCounter } from "./image_usage.ts";
import type { StartedImages } from "./image_work.ts";
import { byteStream } from "../server/watched_stream.ts";
import { streamImages } from "./stream_images.ts";
import type { ImageFeed } from "./types.ts";
import { writeResult } from "./write_result.ts";
import type { Delivered } from "../billing/meter.ts";
import { formatUsd } from "../billing/money.ts";
import { billedExtras, billedTokens } from "./image_pricing.ts";
import { sizeText } from "./size.ts";

/** Collects all images, and charges them before the first byte is sent. @throws {GatewayError} if there is no image */
export async function wholeResponse(started: StartedImages): Promise<Response> {
  const { context: { gateway, timers }, request, feed, counter, dropped, watch, hasDisconnected, releasePixels } =
    started;
  const images = await collectImages(feed, counter);
  watch.stop();
  const created = Math.floor(gateway.now() / 1000);
  const cost = await chargeDelivered(
    started,
    hasDisconnected() ? { status: CLIENT_DISCONNECTED, ending: "client_disconnected" } : {},
  );
  const { usage, sizes } = counter.bill;
  const text = writeResult({ request, created, images, usage });
  const { answer_unread_ms: unreadMs } = gateway.config.resource_limits;
  return new Response(byteStream(text, { unreadMs, timers, ended: releasePixels }), {
    headers: {
      ...started.headers,
      "x-sluice-image-size": sizesText(sizes),
      ...Object.fromEntries(droppedHeader(dropped)),
      "content-type": "application/json",
      "x-sluice-cost": cost,
    },
  });
}

/** Streams the images. @throws {GatewayError} the failure that precedes the first image */
export async function streamedResponse(started: StartedImages): Promise<Response> {
  const { context: { gateway, timers }, request, feed, counter, dropped, watch, drains, releasePixels } = started;
  const body = await streamImages({
    feed: {
      read: () => feed.read(),
      cancel() {
        watch.stop();
        feed.cancel();
        releasePixels();
      },
    },
    request,
    counter,
    seconds: () => Math.floor(gateway.now() / 1000),
    keepAliveMs: gateway.config.keep_alive_seconds * 1000,
    unreadMs: gateway.config.resource_limits.answer_unread_ms,
    timers,
    charge: (isDisconnected) => chargeDelivered(started, isDisconnected ? { ending: "client_disconnected" } : {}),
    disconnected: (received) => gateway.backgroundTasks.add(chargeReceived(started, received)),
    drains,
  });
  return new Response(body, {
    headers: streamHeaders({ ...started.headers, ...Object.fromEntries(droppedHeader(dropped)) }),
  });
}

/**
 * Collects the images. If the request fails after some images, these are the answer.
 * @throws {GatewayError} without any
 */
async function collectImages(feed: ImageFeed, counter: ImageUsageCounter): Promise<FinishedImage[]> {
  const images: FinishedImage[] = [];
  try {
    for (let event = await feed.read(); event !== undefined; event = await feed.read()) {
      if (event.type === "failed") counter.fail(event.error);
      const delivered = event.type === "image" ? counter.deliver(event) : undefined;
      if (delivered !== undefined) images.push(delivered.image);
    }
  } catch (thrown) {
    if (counter.count === 0) throw thrown;
    counter.fail(toGatewayError(thrown));
  } finally {
    feed.cancel();
  }
  if (counter.count === 0) throw counter.failure;
  return images.sort((a, b) => a.index - b.index);
}

/**
 * Returns the common size of all images, or the list of their sizes. The answer's member `size` is the requested size.
 */
function sizesText(sizes: readonly string[]): string {
  return new Set(sizes).size === 1 ? sizes[0] ?? "" : sizes.join(", ");
}

/**
 * Charges the delivered images. Without any, the request fails and costs nothing.
 * @returns the cost in USD, once the entry in the ledger is durable
 */
async function chargeDelivered(
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
async function chargeReceived(started: StartedImages, received: ImageBill): Promise<void> {
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
