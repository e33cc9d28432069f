/** From a request to a feed of pictures: an upstream is found, and time and the client's presence are watched. */
import type { Dropped } from "../canonical/dropped.ts";
import type { Model } from "../catalog/model.ts";
import { type ErrorKind, GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { Meter } from "../metering/meter.ts";
import { planTargets } from "../routing/plan.ts";
import type { ImageFeed, ImageRequest } from "./types.ts";

/** Errors of one target that another target may not have, unless they are final: then pictures may be under way. */
const NEXT_TARGET: ReadonlySet<ErrorKind> = new Set(["upstream", "exhausted", "overloaded", "timeout"]);

/** What is to be made, and by whom. */
export interface ImageJob {
  gateway: Pick<Gateway, "imageUpstreams" | "random">;
  request: ImageRequest;
  model: Model;
  dropped: Dropped;
  /** Aborted when the client has gone or the time is up. */
  signal: AbortSignal;
  meter: Pick<Meter, "attempt" | "first">;
}

/**
 * Tries the targets in turn until one starts. Its pictures may be under way then, so that there is no other try.
 * @throws {GatewayError} the error of the last target, or the signal's reason
 */
export async function startImages(job: ImageJob): Promise<ImageFeed> {
  const { gateway, model, signal } = job;
  let last: unknown = new GatewayError("overloaded", `Model "${model.id}" has no upstream that could answer`);
  for (const target of planTargets(model.targets, gateway.random)) {
    const upstream = gateway.imageUpstreams.get(target.upstream);
    if (upstream === undefined) continue;
    job.meter.attempt(target.upstream);
    try {
      const feed = await upstream.create({ request: job.request, model, target, signal, dropped: job.dropped });
      return untilAborted(feed, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof GatewayError) || error.final || !NEXT_TARGET.has(error.kind)) throw error;
      last = error;
    }
  }
  throw last;
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
  /** Aborted when the process ends; its reason is what the client is told. */
  interrupted: AbortSignal;
  /** Longest time, in milliseconds. */
  totalMs: number;
}

/** Watches the client, the process and the time. */
export function watchRequest({ client, interrupted, totalMs }: Watched): Watch {
  const control = new AbortController();
  const leave = () => control.abort(client.reason);
  interrupted.addEventListener("abort", () => control.abort(interrupted.reason), { once: true });
  const timer = setTimeout(() => {
    control.abort(
      new GatewayError("timeout", `Cannot wait for the pictures any longer: ${totalMs / 1000} s have gone by`, {
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
