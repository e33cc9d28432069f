/**
 * Work that the process waits for before it ends: requests in progress, answers that are drained for the bill after
 * their clients have disconnected, and billing tasks that no client waits for.
 */
import { type UnorderedItem, UnorderedList } from "../unordered_list.ts";
import type { GatewayError } from "../errors.ts";
import type { Meter } from "./meter.ts";

/** Kind of a request: images take longer than texts, and cost more to restart. */
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
  /** Counts requests, of one kind or of all. */
  count(kind?: InFlightKind): number;
  /** Resolves when there are none left, of one kind or of all. */
  whenDone(kind?: InFlightKind): Promise<void>;
  /**
   * Aborts the requests of one kind, or all, without a charge. Resolves when they have ended, or after the grace
   * period.
   */
  stop(reason: GatewayError, kind?: InFlightKind): Promise<void>;
}

/** A request and its meter. */
interface Metered extends UnorderedItem {
  readonly meter: Pick<Meter, "fail" | "done">;
  readonly request: InFlightRequest;
}

/** Time for requests to end after `stop`, in milliseconds. */
const GRACE_MS = 1_000;

/** Starts with no requests. */
export function createInFlightRequests(graceMs = GRACE_MS): InFlightRequests {
  const inFlight = new UnorderedList<Metered>();

  function of(kind?: InFlightKind): Metered[] {
    return inFlight.items.filter(({ request }) => kind === undefined || request.kind === kind);
  }

  async function whenDone(kind?: InFlightKind): Promise<void> {
    for (let open = of(kind); open.length > 0; open = of(kind)) await Promise.all(open.map(({ meter }) => meter.done));
  }

  return {
    add(meter, request) {
      const metered = { meter, request, at: -1 };
      inFlight.add(metered);
      void meter.done.then(() => inFlight.delete(metered));
    },
    count: (kind) => of(kind).length,
    whenDone,
    async stop(reason, kind) {
      const stopped = of(kind);
      for (const { request } of stopped) request.stop(reason);
      if (stopped.length === 0) return;
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, graceMs);
      await Promise.race([Promise.all(stopped.map(({ meter }) => meter.done)), late.promise]);
      clearTimeout(timer);
      await Promise.all(
        stopped.filter(({ at }) => at >= 0).map(({ meter }) => meter.fail(reason.status, { code: "shutdown" })),
      );
    },
  };
}

/** Bounds the number of drained answers: each holds memory and an upstream connection. */
export interface DrainedRequests {
  /**
   * Counts a drained answer until `done` resolves.
   * @returns false if there are `limit` already: the caller must cancel its upstream instead
   */
  begin(done: Promise<unknown>, limit: number): boolean;
}

/** Starts at zero. */
export function createDrainedRequests(): DrainedRequests {
  let open = 0;
  return {
    begin(done, limit) {
      if (open >= limit) return false;
      open++;
      const end = () => void open--;
      done.then(end, end);
      return true;
    },
  };
}

/** Work in progress that no request waits for. */
export interface BackgroundTasks {
  /** Adds a task without a waiting caller. The task logs its own errors. */
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
