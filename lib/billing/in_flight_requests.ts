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

interface MeteredRequest extends UnorderedItem {
  readonly meter: Pick<Meter, "fail" | "done">;
  readonly request: InFlightRequest;
}

/** Time for requests to end after `stop`, in milliseconds. */
const GRACE_MS = 1_000;

/** Requests in progress. */
export class InFlightRequests {
  readonly #inFlight = new UnorderedList<MeteredRequest>();
  readonly #graceMs: number;

  /** @param graceMs time for requests to end after `stop`, in milliseconds */
  constructor(graceMs: number = GRACE_MS) {
    this.#graceMs = graceMs;
  }

  /** Keeps a request in the list until its meter has ended. */
  add(meter: MeteredRequest["meter"], request: InFlightRequest): void {
    const metered = { meter, request, at: -1 };
    this.#inFlight.add(metered);
    void meter.done.then(() => this.#inFlight.delete(metered));
  }

  count(kind?: InFlightKind): number {
    return this.#requestsOf(kind).length;
  }

  /** Resolves when no requests are left, of one kind or of all. */
  async whenDone(kind?: InFlightKind): Promise<void> {
    for (let left = this.#requestsOf(kind); left.length > 0; left = this.#requestsOf(kind)) {
      await Promise.all(left.map(({ meter }) => meter.done));
    }
  }

  /**
   * Aborts the requests of one kind, or all, without a charge. Resolves when they have ended. Requests that still run
   * after the grace period are ended without waiting for their work.
   */
  async stop(reason: GatewayError, kind?: InFlightKind): Promise<void> {
    const stopped = this.#requestsOf(kind);
    for (const { request } of stopped) request.stop(reason);
    if (stopped.length === 0) return;
    await settlesWithin(this.#graceMs, Promise.all(stopped.map(({ meter }) => meter.done)));
    await Promise.all(
      // Those that are still in the list.
      stopped.filter(({ at }) => at >= 0).map(({ meter }) => meter.fail(reason.status, { code: "shutdown" })),
    );
  }

  #requestsOf(kind?: InFlightKind): MeteredRequest[] {
    return this.#inFlight.items.filter(({ request }) => kind === undefined || request.kind === kind);
  }
}

/** Bounds the number of drained answers: each holds memory and an upstream connection. */
export class DrainedRequests {
  /** The key of each drained answer. */
  readonly #drained = new Map<Promise<unknown>, string | undefined>();

  /**
   * Counts an answer that is being drained until `done` settles.
   * @returns false if there are `max` drained answers already, or three quarters of them for this API key: the caller
   * must cancel its upstream request instead
   */
  begin(done: Promise<unknown>, { max, keyId }: { max: number; keyId: string | undefined }): boolean {
    const ofKey = this.#drained.values().reduce((count, key) => key === keyId ? count + 1 : count, 0);
    if (this.#drained.size >= max || ofKey >= Math.max(1, max * KEY_SHARE)) return false;
    this.#drained.set(done, keyId);
    const end = () => void this.#drained.delete(done);
    done.then(end, end);
    return true;
  }
}

/** Work in progress that no request waits for. */
export class BackgroundTasks {
  readonly #running = new Set<Promise<void>>();

  /** Adds a task. The task must log its own errors, as they are ignored here. */
  add(work: Promise<unknown>): void {
    const ended: Promise<void> = work.then(() => {}, () => {}).finally(() => this.#running.delete(ended));
    this.#running.add(ended);
  }

  /** Resolves when all tasks are done. */
  async done(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}
