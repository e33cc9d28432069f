/** Writes the response to an image request, as a whole or as a stream. */
import { toGatewayError } from "../errors.ts";
import { droppedHeader } from "../request/write_response.ts";
import { CLIENT_DISCONNECTED } from "../request/request_meter.ts";
import { streamHeaders } from "../server/json_response.ts";
import { chargeDelivered, chargeReceived } from "./charge_images.ts";
import type { FinishedImage, ImageUsageCounter } from "./image_usage.ts";
import type { StartedImages } from "./image_work.ts";
import { byteStream } from "./json_chunks.ts";
import { streamImages } from "./stream_images.ts";
import type { ImageFeed } from "./types.ts";
import { writeResult } from "./write_result.ts";

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
