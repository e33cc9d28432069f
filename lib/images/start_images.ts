/** Starts an image request at a target, and watches its time limit and its client. */
import { abortable } from "../abort.ts";
import { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import type { Model } from "../catalog/model.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { Meter } from "../billing/meter.ts";
import { headersOfAttempt, recordBrokenAnswer, tryTargets } from "../request/attempts.ts";
import { plainFacts } from "../request/targets.ts";
import { planChoices } from "../routing/plan.ts";
import type { Attempt } from "../routing/retry.ts";
import { classifyFailure } from "../routing/classify_failure.ts";
import { runForKey } from "../scheduler.ts";
import type { ImageFeed, ImageRequest } from "./types.ts";

/** A request with the services that start it. */
export interface ImageJob {
  gateway: Pick<
    Gateway,
    "config" | "health" | "imageUpstreams" | "observer" | "monotonic" | "now" | "random" | "log"
  >;
  requestId: string;
  /** Id of the client's key. */
  key: string;
  request: ImageRequest;
  model: Model;
  dropped: UnsupportedParameters;
  /** Aborts when the client disconnects or the time limit is over. */
  signal: AbortSignal;
  /** Returns true once the client has disconnected, even if its images are still made. */
  hasDisconnected: () => boolean;
  meter: Pick<Meter, "entry" | "ended">;
}

/** Started work. */
export interface Started {
  feed: ImageFeed;
  /** Headers that name the model and upstream. */
  headers: Record<string, string>;
}

/**
 * Tries targets one after another until one starts. After that, and after a final error, no other target is tried,
 * because images may already be in progress.
 * @throws {GatewayError} the error of the last target, or the signal's reason
 */
export async function startImages(job: ImageJob): Promise<Started> {
  const { gateway, requestId, key, model, signal, hasDisconnected, meter } = job;
  const { random, imageUpstreams } = gateway;
  let last: Attempt | undefined;
  try {
    const feed = await tryTargets(gateway, {
      requestId,
      signal,
      entry: meter.entry,
      key,
      choices: planChoices({
        models: [{ model, price: { prompt: 0n, completion: 0n } }],
        facts: (target) => plainFacts(target, { gateway, key }),
        draw: random,
      }).filter(({ target }) => imageUpstreams.has(target.upstream)),
      deadlineMs: gateway.config.images.total_ms,
      atMostOnce: true,
      send: (attempt) => startAt(last = attempt, job),
      isOver: () => signal.aborted || meter.ended || hasDisconnected(),
    });
    return { feed, headers: last === undefined ? {} : Object.fromEntries(headersOfAttempt(last, meter.entry)) };
  } catch (thrown) {
    signal.throwIfAborted();
    throw thrown instanceof GatewayError && last !== undefined
      ? thrown.withHeaders(Object.fromEntries(headersOfAttempt(last, meter.entry)))
      : thrown;
  }
}

async function startAt(attempt: Attempt, job: ImageJob): Promise<ImageFeed> {
  const { target } = attempt;
  const { gateway, request, model, dropped, signal, meter } = job;
  const upstream = gateway.imageUpstreams.get(target.upstream);
  if (upstream === undefined) throw new GatewayError("overloaded", `Model "${model.id}" has no upstream`);
  meter.entry.beginAttempt(target.upstream, target);
  const begunAt = gateway.monotonic();
  // Only the target that answers decides which parameters are dropped.
  const attemptDropped = new UnsupportedParameters();
  const feed = await upstream.create({
    request,
    model,
    target,
    signal,
    dropped: attemptDropped,
    identify: (requestId) => void (meter.entry.vendorRequestId = requestId),
  });
  for (const name of attemptDropped.names) dropped.add(name);
  return untilAborted(reportingFailures(feed, { attempt, begunAt, job }), job);
}

/** Returns a feed that records failures after the start, for the target's health, too. They are not retried. */
function reportingFailures(
  feed: ImageFeed,
  { attempt, begunAt, job }: { attempt: Attempt; begunAt: number; job: ImageJob },
): ImageFeed {
  const { gateway, signal, requestId, meter } = job;
  return {
    async read() {
      try {
        return await feed.read();
      } catch (error) {
        if (!signal.aborted) {
          gateway.health.report(attempt.permit, classifyFailure(error, { atMostOnce: true }).outcome);
          recordBrokenAnswer(error, { attempt, begunAt, requestId, entry: meter.entry, gateway });
        }
        throw error;
      }
    },
    cancel: () => feed.cancel(),
  };
}

/** Returns a feed whose reads reject once the signal aborts, even if the upstream ignores the signal. */
function untilAborted(feed: ImageFeed, { signal, key }: Pick<ImageJob, "signal" | "key">): ImageFeed {
  return {
    async read() {
      signal.throwIfAborted();
      // A stream is read outside the handler of its request.
      return await abortable(runForKey(key, () => feed.read()), signal);
    },
    cancel: () => feed.cancel(),
  };
}

/** Watches the client, the process and the time limit of one request. */
export interface RequestWatch {
  /** Aborts when the images are no longer wanted. */
  readonly signal: AbortSignal;
  /** Stops listening to the client's signal, because Deno also aborts it after a successful answer. */
  answered(): void;
  /** Ends the watch. May be called at any time and repeatedly. */
  stop(): void;
}

/** Options for watching an image request. */
export interface RequestWatchOptions {
  /** Aborts when the client disconnects. */
  client: AbortSignal;
  /** Called when the client disconnects. Returns true if the images are still made. */
  drains: () => boolean;
  /** Aborts when the process ends. Its reason is the error for the client. */
  interrupted: AbortSignal;
  totalMs: number;
}

/** Begins to watch a request. */
export function watchRequest({ client, drains, interrupted, totalMs }: RequestWatchOptions): RequestWatch {
  const control = new AbortController();
  const cancel = () => drains() ? undefined : control.abort(client.reason);
  const interrupt = () => control.abort(interrupted.reason);
  if (interrupted.aborted) interrupt();
  else interrupted.addEventListener("abort", interrupt);
  const timer = setTimeout(() => {
    const message = `The images were not ready within ${totalMs / 1000} s`;
    control.abort(new GatewayError("timeout", message, { final: true }));
  }, totalMs);
  if (client.aborted) cancel();
  client.addEventListener("abort", cancel, { once: true });
  const answered = () => client.removeEventListener("abort", cancel);
  return {
    signal: control.signal,
    answered,
    stop() {
      clearTimeout(timer);
      answered();
    },
  };
}
