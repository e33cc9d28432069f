/** Requests that are under way: when the process ends, each of them must come to its end, and into the ledger. */
import type { GatewayError } from "../errors.ts";
import type { Meter } from "./meter.ts";

/** What a request is for: pictures take longer than texts, and cost more to begin again. */
export type RunningKind = "text" | "images";

/** A request under way. */
export interface RunningRequest {
  kind: RunningKind;
  /** Ends its work early, with an error that tells the client why. */
  stop: (reason: GatewayError) => void;
}

/** Requests under way. */
export interface Running {
  /** Takes note of a request. What it returns takes it out again: to be called when its meter has ended. */
  add(meter: Pick<Meter, "fail" | "done">, request: RunningRequest): () => void;
  /** How many there are, of one kind or of all. */
  count(kind?: RunningKind): number;
  /** Resolves when there are none, of one kind or of all. */
  over(kind?: RunningKind): Promise<void>;
  /**
   * Ends those of one kind, or all of them, early and without a charge. Resolves when they have ended; those that take
   * too long are given up.
   */
  stop(reason: GatewayError, kind?: RunningKind): Promise<void>;
}

/** A request with its meter, at its place among the others; -1: it is none of them any more. */
interface Place {
  readonly meter: Pick<Meter, "fail" | "done">;
  readonly request: RunningRequest;
  at: number;
}

/** How long requests may take to end when they are told to, in milliseconds. */
const GRACE_MS = 1_000;

/** Starts with none. */
export function createRunning(graceMs = GRACE_MS): Running {
  /**
   * No `Map`: one that is added to and taken from all the time leaves a chain of its old tables, each with the requests of
   * its time and all that they hold. Once the first of them is old, only a full collection frees them, and the small ones
   * copy them all: 10 KB and 15 µs per request.
   */
  const running: Place[] = [];

  function of(kind?: RunningKind): Place[] {
    return running.filter(({ request }) => kind === undefined || request.kind === kind);
  }

  async function over(kind?: RunningKind): Promise<void> {
    for (let open = of(kind); open.length > 0; open = of(kind)) await Promise.all(open.map(({ meter }) => meter.done));
  }

  return {
    add(meter, request) {
      const place = { meter, request, at: running.length };
      running.push(place);
      return () => {
        const last = running.at(-1);
        if (place.at < 0 || last === undefined) return;
        running[place.at] = last;
        last.at = place.at;
        place.at = -1;
        running.pop();
      };
    },
    count: (kind) => of(kind).length,
    over,
    async stop(reason, kind) {
      const stopped = of(kind);
      for (const { request } of stopped) request.stop(reason);
      if (stopped.length === 0) return;
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, graceMs);
      await Promise.race([Promise.all(stopped.map(({ meter }) => meter.done)), late.promise]);
      clearTimeout(timer);
      await Promise.all(stopped.filter(({ at }) => at >= 0).map(({ meter }) => meter.fail(reason.status)));
    },
  };
}
