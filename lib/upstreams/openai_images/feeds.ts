/** Creates the image feeds of one answer, of a pending answer, and of several parallel answers. */
import { GatewayError } from "../../errors.ts";
import type { ImageEvent, ImageFeed, ImageRequest } from "../../images/types.ts";
import type { Incoming } from "../transport.ts";
import { asFinal } from "./map_errors.ts";
import { readImage } from "./raw_images.ts";
import { readAnswer, type SentImage } from "./read_answer.ts";

interface AnsweredRequest {
  request: ImageRequest;
  n: number;
  /** Aborts when the images are no longer wanted. */
  signal: AbortSignal;
  /** True if reported tokens of uploaded images are billed. */
  readsUsage: boolean;
}

/**
 * Reads the images of one answer. A failure before the first image throws; a later one fails the missing images. Data
 * after the last image is not read.
 */
export function answerFeed(incoming: Incoming, { request, n, signal, readsUsage }: AnsweredRequest): ImageFeed {
  const sent = readAnswer(incoming, { readsUsage });
  const missing = new Set(Array.from({ length: n }, (_, index) => index));
  const steps = new Map<number, number>();
  const queue: ImageEvent[] = [];
  /** Tokens of uploaded images that were already reported with delivered images. */
  let reported = 0;
  let isDone = false;
  let cancelled = false;

  function finish(): void {
    isDone = true;
    incoming.cancel();
  }

  async function next(): Promise<ImageEvent | undefined> {
    const { done, value } = await sent.next();
    if (done === true) {
      throw new GatewayError("upstream", `The upstream made ${n - missing.size} of ${n} images`);
    }
    return value.type === "image" ? await readFinished(value) : await readPreview(value);
  }

  async function readFinished(
    { raw, index: sentIndex, inputImageTokens = 0 }: SentImage,
  ): Promise<ImageEvent | undefined> {
    const index = sentIndex !== undefined && missing.has(sentIndex) ? sentIndex : missing.values().next().value;
    if (index === undefined) return undefined;
    missing.delete(index);
    if (missing.size === 0) finish();
    try {
      const base64 = await readImage(raw, { request, signal });
      if (!(inputImageTokens > reported)) return { type: "image", index, base64 };
      // Each image may report all uploads of the request, which must be counted only once.
      const more = inputImageTokens - reported;
      reported = inputImageTokens;
      return { type: "image", index, base64, inputImageTokens: more };
    } catch (error) {
      if (error instanceof GatewayError) return { type: "failed", index, error };
      throw error;
    }
  }

  /** Reads a preview. One that cannot be read, or that belongs to no known image, is skipped. */
  async function readPreview({ raw, index: sentIndex, step: sentStep }: SentImage): Promise<ImageEvent | undefined> {
    const index = sentIndex ?? (n === 1 ? 0 : undefined);
    if (index === undefined || !missing.has(index)) return undefined;
    const step = sentStep ?? steps.get(index) ?? 0;
    steps.set(index, step + 1);
    try {
      return { type: "partial", index, step, base64: await readImage(raw, { request, signal }) };
    } catch {
      return undefined;
    }
  }

  return {
    async read() {
      while (!cancelled) {
        if (queue.length > 0) return queue.shift();
        if (isDone) return undefined;
        try {
          const event = await next();
          if (event !== undefined) return cancelled ? undefined : event;
        } catch (thrown) {
          if (cancelled) return undefined;
          finish();
          const error = asFinal(thrown);
          if (!(error instanceof GatewayError) || missing.size === n) throw error;
          for (const index of missing) queue.push({ type: "failed", index, error });
        }
      }
      return undefined;
    },
    cancel() {
      cancelled = true;
      finish();
    },
  };
}

/** Creates a feed that has not begun. @param cancel must make `start` fail, or end the feed that it resolves to */
export function lateFeed(start: Promise<ImageFeed>, cancel: () => void): ImageFeed {
  let cancelled = false;
  return {
    async read() {
      try {
        return await (await start).read();
      } catch (error) {
        if (cancelled) return undefined;
        throw error;
      }
    },
    cancel() {
      cancelled = true;
      cancel();
      start.then((feed) => feed.cancel(), () => {});
    },
  };
}

/**
 * Creates a feed of images that are made by one call each, in the order of their arrival. A failure affects one image.
 */
export function mergedFeed(starts: readonly Promise<ImageFeed>[], cancel: () => void): ImageFeed {
  const parts = starts.map((start) => lateFeed(start, cancel));
  const pending = new Map(parts.map((part, index) => [index, handleRejection(readPart(part, index))]));
  let cancelled = false;

  async function readPart(part: ImageFeed, index: number): Promise<{ index: number; event: ImageEvent | undefined }> {
    try {
      const event = await part.read();
      return { index, event: event && { ...event, index } };
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      return { index, event: { type: "failed", index, error } };
    }
  }

  return {
    async read() {
      while (!cancelled && pending.size > 0) {
        const { index, event } = await Promise.race(pending.values());
        const part = parts[index];
        if (part !== undefined && event?.type === "partial") pending.set(index, handleRejection(readPart(part, index)));
        else pending.delete(index);
        if (event !== undefined && !cancelled) return event;
      }
      return undefined;
    },
    cancel() {
      cancelled = true;
      for (const part of parts) part.cancel();
    },
  };
}

/** Marks a possible rejection as handled, and returns the same promise. */
function handleRejection<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
