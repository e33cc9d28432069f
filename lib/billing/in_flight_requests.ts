/**
 * Work that the process waits for before it ends: requests in progress, answers that are drained for the bill after
 * their clients have disconnected, and billing tasks that no client waits for.
 */
import { settlesWithin } from "../abort.ts";
import { KEY_SHARE } from "../admission_queue.ts";
import { type UnorderedItem, UnorderedList } from "../unordered_list.ts";
import type { GatewayError } from "../errors.ts";
import type { Meter } from "./meter.ts";

/** Kind of a request. They are distinguished because image requests take longer and cost more to restart than texts. */
export type InFlightKind = "text" | "images";

/** A request in progress. */
export interface InFlightRequest {
  kind: InFlightKind;
  /** Aborts the request with an error that tells the client the reason. */
  stop: (reason: GatewayError) => void;
}

/** Requests in progress. */
export interface InFlightRequests {
  /** Adds a request until its meter has ended. */
  add(meter: Pick<Meter, "fail" | "done">, request: InFlightRequest): void;
  count(kind?: InFlightKind): number;
  /** Resolves when no requests are left, of one kind or of all. */
  whenDone(kind?: InFlightKind): Promise<void>;
  /**
   * Aborts the requests of one kind, or all, without a charge. Resolves when they have ended. Those that still run after
   * the grace period are ended without waiting for their work.
   */
  stop(reason: GatewayError, kind?: InFlightKind): Promise<void>;
}

interface MeteredRequest extends UnorderedItem {
  readonly meter: Pick<Meter, "fail" | "done">;
  readonly request: InFlightRequest;
}

/** Time for requests to end after `stop`, in milliseconds. */
const GRACE_MS = 1_000;

/** Creates an empty list of requests. @param graceMs time for requests to end after `stop`, in milliseconds */
export function createInFlightRequests(graceMs = GRACE_MS): InFlightRequests {
  const inFlight = new UnorderedList<MeteredRequest>();

  function requestsOf(kind?: InFlightKind): MeteredRequest[] {
    return inFlight.items.filter(({ request }) => kind === undefined || request.kind === kind);
  }

  async function whenDone(kind?: InFlightKind): Promise<void> {
    for (let left = requestsOf(kind); left.length > 0; left = requestsOf(kind)) {
      await Promise.all(left.map(({ meter }) => meter.done));
    }
  }

  return {
    add(meter, request) {
      const metered = { meter, request, at: -1 };
      inFlight.add(metered);
      void meter.done.then(() => inFlight.delete(metered));
    },
    count: (kind) => requestsOf(kind).length,
    whenDone,
    async stop(reason, kind) {
      const stopped = requestsOf(kind);
      for (const { request } of stopped) request.stop(reason);
      if (stopped.length === 0) return;
      await settlesWithin(graceMs, Promise.all(stopped.map(({ meter }) => meter.done)));
      await Promise.all(
        // Those that are still in the list.
        stopped.filter(({ at }) => at >= 0).map(({ meter }) => meter.fail(reason.status, { code: "shutdown" })),
      );
    },
  };
}

/** Bounds the number of drained answers: each holds memory and an upstream connection. */
export interface DrainedRequests {
  /**
   * Counts an answer that is being drained until `done` settles.
   * @returns false if there are `max` drained answers already, or three quarters of them for this API key: the caller
   * must cancel its upstream request instead
   */
  begin(done: Promise<unknown>, { max, keyId }: { max: number; keyId: string | undefined }): boolean;
}

/** Creates a count of drained answers, which starts at 0. */
export function createDrainedRequests(): DrainedRequests {
  /** The key of each drained answer. */
  const drained = new Map<Promise<unknown>, string | undefined>();
  return {
    begin(done, { max, keyId }) {
      const ofKey = drained.values().reduce((count, key) => key === keyId ? count + 1 : count, 0);
      if (drained.size >= max || ofKey >= Math.max(1, max * KEY_SHARE)) return false;
      drained.set(done, keyId);
      const end = () => void drained.delete(done);
      done.then(end, end);
      return true;
    },
  };
}

/** Work in progress that no request waits for. */
export interface BackgroundTasks {
  /** Adds a task. The task must log its own errors, as they are ignored here. */
  add(work: Promise<unknown>): void;
  /** Resolves when all tasks are done. */
  done(): Promise<void>;
}

/** Creates an empty set of tasks. */
export function createBackgroundTasks(): BackgroundTasks {
  const running = new Set<Promise<void>>();
  return {
    add(work) {
      const ended: Promise<void> = work.then(() => {}, () => {}).finally(() => running.delete(ended));
      running.add(ended);
    },
    async done() {
      while (running.size > 0) await Promise.all(running);
    },
  };
}
