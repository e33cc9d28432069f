/** From a request to a feed of images: an upstream is found, and time and the client's presence are watched. */
import { Dropped } from "../protocols/canonical/dropped.ts";
import type { Model } from "../catalog/model.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { Meter } from "../billing/meter.ts";
import type { StopSignal } from "../stop.ts";
import { attemptsWith, headersOfAttempt } from "../request/targets.ts";
import type { Pass } from "../routing/health.ts";
import { planChoices } from "../routing/plan.ts";
import { type Attempt, attempt } from "../routing/retry.ts";
import { judge } from "../routing/verdict.ts";
import type { ImageFeed, ImageRequest } from "./types.ts";

/** What is to be made, and by whom. */
export interface ImageJob {
  gateway: Pick<Gateway, "config" | "health" | "retries" | "imageUpstreams" | "monotonic" | "random" | "log">;
  requestId: string;
  /** The client key whose request it is. */
  key: string;
  request: ImageRequest;
  model: Model;
  dropped: Dropped;
  /** Aborted when the client has gone or the time is up. */
  signal: AbortSignal;
  /** Whether the client has gone, also where that does not abort the signal. */
  hasLeft: () => boolean;
  meter: Pick<Meter, "attempt" | "first" | "ended">;
}

/** Work that has started. */
export interface Started {
  feed: ImageFeed;
  /** What tells the client who does it. */
  headers: Record<string, string>;
}

/**
 * Tries the targets in turn until one starts. Its images may be under way then, so that there is no other try; nor is
 * there one after an error that is final.
 * @throws {GatewayError} the error of the last target, or the signal's reason
 */
export async function startImages(job: ImageJob): Promise<Started> {
  const { gateway, requestId, key, model, signal, hasLeft, meter } = job;
  const { health, random, imageUpstreams } = gateway;
  let last: Attempt | undefined;
  try {
    const feed = await attempt(attemptsWith(gateway, {
      requestId,
      signal,
      key,
      choices: planChoices({
        models: [{ model, price: { prompt: 0n, completion: 0n } }],
        facts: (target) => ({
          slugs: [],
          isUp: health.isUp(target, key),
          isNative: true,
          isIssuer: false,
          ...health.speed(target),
        }),
        random,
      }).filter(({ target }) => imageUpstreams.has(target.upstream)),
      deadlineMs: gateway.config.images.total_ms,
      once: true,
      ask: (attempt) => startAt(last = attempt, job),
      isOver: () => signal.aborted || meter.ended || hasLeft(),
    }));
    return { feed, headers: last === undefined ? {} : Object.fromEntries(headersOfAttempt(last)) };
  } catch (thrown) {
    signal.throwIfAborted();
    throw thrown instanceof GatewayError && last !== undefined
      ? thrown.withHeaders(Object.fromEntries(headersOfAttempt(last)))
      : thrown;
  }
}

async function startAt({ target, pass }: Attempt, job: ImageJob): Promise<ImageFeed> {
  const { gateway, request, model, dropped, signal, meter } = job;
  const upstream = gateway.imageUpstreams.get(target.upstream);
  if (upstream === undefined) throw new GatewayError("overloaded", `Model "${model.id}" has no upstream`);
  meter.attempt(target.upstream);
  // What is lost is lost at the target that starts.
  const tried = new Dropped();
  const feed = await upstream.create({ request, model, target, signal, dropped: tried });
  for (const name of tried.names) dropped.add(name);
  return untilAborted(watched(feed, { pass, job }), signal);
}

/** What breaks off after it has begun is not tried again, but tells something of its target. */
function watched(feed: ImageFeed, { pass, job: { gateway, signal } }: { pass: Pass; job: ImageJob }): ImageFeed {
  return {
    async read() {
      try {
        return await feed.read();
      } catch (error) {
        if (!signal.aborted) gateway.health.report(pass, judge(error, { once: true }).outcome);
        throw error;
      }
    },
    cancel: () => feed.cancel(),
  };
}

/** A feed whose reads end with the signal, whether the upstream looks at it or not. */
function untilAborted(feed: ImageFeed, signal: AbortSignal): ImageFeed {
  return {
    read() {
      return new Promise((resolve, reject) => {
        const abort = () => reject(signal.reason);
        if (signal.aborted) return abort();
        signal.addEventListener("abort", abort, { once: true });
        feed.read().then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
      });
    },
    cancel: () => feed.cancel(),
  };
}

/** A watch over one request. */
export interface Watch {
  readonly signal: AbortSignal;
  /** The client's signal no longer tells whether it is there: its answer has begun. */
  answered(): void;
  /** Ends the watch. Safe at any time, more than once. */
  stop(): void;
}

/** What a request is watched for. */
export interface Watched {
  /** Aborted when the client has gone. */
  client: AbortSignal;
  /** Asked when the client has gone: true where the images are made all the same. */
  drains: () => boolean;
  /** Given up when the process ends; its reason is what the client is told. */
  interrupted: StopSignal;
  /** Longest time, in milliseconds. */
  totalMs: number;
}

/** Watches the client, the process and the time. */
export function watchRequest({ client, drains, interrupted, totalMs }: Watched): Watch {
  const control = new AbortController();
  const leave = () => drains() ? undefined : control.abort(client.reason);
  const interrupt = { handleEvent: () => control.abort(interrupted.reason) };
  if (interrupted.aborted) interrupt.handleEvent();
  else interrupted.addEventListener("abort", interrupt);
  const timer = setTimeout(() => {
    control.abort(
      new GatewayError("timeout", `Cannot wait for the images any longer: ${totalMs / 1000} s have gone by`, {
        final: true,
      }),
    );
  }, totalMs);
  if (client.aborted) leave();
  client.addEventListener("abort", leave, { once: true });
  const answered = () => client.removeEventListener("abort", leave);
  return {
    signal: control.signal,
    answered,
    stop() {
      clearTimeout(timer);
      answered();
    },
  };
}
