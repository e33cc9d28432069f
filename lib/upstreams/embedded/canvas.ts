/** The embedded model `canvas`: images without a network. `docs/reference/images.md` describes it. */
import { GatewayError, toGatewayError } from "../../errors.ts";
import { base64Steps } from "../../images/base64_steps.ts";
import type { PaintOptions } from "../../images/codec_messages.ts";
import { runJob } from "../../images/codec_pool.ts";
import { checkPixels, pixelCount } from "../../images/pixel_limits.ts";
import { runSliced } from "../../scheduler.ts";
import type { ImageCall, ImageEvent, ImageFeed, ImageRequest } from "../../images/types.ts";

/** Maximum number of previews of an image. */
const MAX_PREVIEWS = 3;

/**
 * Starts a call. Each `read()` paints one image or preview; the previews of an image come before it. If the call's
 * signal is aborted, `read()` rejects with the signal's reason; after `cancel()` it returns `undefined`.
 * @throws {GatewayError} `invalid` if an upload has too many pixels
 */
export function paintImages(call: ImageCall): ImageFeed {
  call.signal.throwIfAborted();
  const { request, dropped } = call;
  for (const image of request.images) checkPixels(image);
  if (request.mask !== undefined) checkPixels(request.mask);
  for (const name of Object.keys(request.rest)) dropped.add(name);
  return createFeed(call);
}

function createFeed({ request, signal }: ImageCall): ImageFeed {
  const cancelled = new AbortController();
  const aborted = AbortSignal.any([signal, cancelled.signal]);
  const events = makeEvents(request, aborted);
  return {
    async read() {
      if (cancelled.signal.aborted) return undefined;
      signal.throwIfAborted();
      try {
        const { done, value } = await events.next();
        return done === true ? undefined : value;
      } catch (thrown) {
        if (cancelled.signal.aborted) return undefined;
        throw thrown;
      }
    },
    cancel: () => cancelled.abort(),
  };
}

async function* makeEvents(request: ImageRequest, signal: AbortSignal): AsyncGenerator<ImageEvent, undefined> {
  const previews = request.stream ? Math.min(request.partialImages, MAX_PREVIEWS) : 0;
  for (let index = 0; index < request.n; index++) {
    try {
      for (let step = 0; step < previews; step++) {
        // If there are fewer previews, the coarsest ones are left out.
        const base64 = await paint(request, { index, step: MAX_PREVIEWS - previews + step, signal });
        yield { type: "partial", index, step, base64 };
      }
      yield { type: "image", index, base64: await paint(request, { index, signal }) };
    } catch (thrown) {
      signal.throwIfAborted();
      const error = toGatewayError(thrown);
      // An invalid upload fails the whole request.
      if (error.kind === "invalid") throw error;
      yield { type: "failed", index, error };
    }
  }
  return undefined;
}

/** Paints one image, or the preview of a step. @returns base64 */
async function paint(
  { kind, prompt, size, format, compression, images, mask }: ImageRequest,
  { index, step, signal }: { index: number; step?: number; signal: AbortSignal },
): Promise<string> {
  const painting: PaintOptions = {
    prompt,
    size,
    index,
    ...(step !== undefined && { step }),
    encoding: { format, ...(compression !== undefined && { compression }) },
  };
  if (kind === "generation") {
    return await runSliced(
      base64Steps(await runJob({ type: "paint", painting }, { signal, pixels: pixelCount(size) })),
    );
  }
  if (images.length === 0) {
    throw new GatewayError("invalid", "Cannot edit: expected at least one image", { param: "image" });
  }
  const orientations = images.map(({ orientation }) => orientation);
  const uploads = [...images, ...(mask === undefined ? [] : [mask])];
  const file = await runJob(
    { type: "edit", painting, orientations, ...(mask !== undefined && { maskOrientation: mask.orientation }) },
    {
      signal,
      files: uploads.map(({ bytes }) => bytes),
      pixels: pixelCount(size) + Math.max(...uploads.map(pixelCount)),
    },
  );
  return await runSliced(base64Steps(file));
}
