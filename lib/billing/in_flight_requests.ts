/** Requests in progress. At shutdown each of them must end and be entered into the ledger. */
import { Bag, type Bagged } from "../unordered_list.ts";
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
  /** Adds a request. Returns the function that removes it, to be called when its meter has ended. */
  add(meter: Pick<Meter, "fail" | "done">, request: InFlightRequest): () => void;
  /** Counts requests, of one kind or of all. */
  count(kind?: InFlightKind): number;
  /** Resolves when there are none left, of one kind or of all. */
  over(kind?: InFlightKind): Promise<void>;
  /**
   * Aborts the requests of one kind, or all, without a charge. Resolves when they have ended, or after the grace
   * period.
   */
  stop(reason: GatewayError, kind?: InFlightKind): Promise<void>;
}

/** A request and its meter. */
interface Metered extends Bagged {
  readonly meter: Pick<Meter, "fail" | "done">;
  readonly request: InFlightRequest;
}

/** Time for requests to end after `stop`, in milliseconds. */
const GRACE_MS = 1_000;

/** Starts with no requests. */
export function createInFlightRequests(graceMs = GRACE_MS): InFlightRequests {
  const inFlight = new Bag<Metered>();

  function of(kind?: InFlightKind): Metered[] {
    return inFlight.items.filter(({ request }) => kind === undefined || request.kind === kind);
  }

  async function over(kind?: InFlightKind): Promise<void> {
    for (let open = of(kind); open.length > 0; open = of(kind)) await Promise.all(open.map(({ meter }) => meter.done));
  }

  return {
    add(meter, request) {
      const metered = { meter, request, at: -1 };
      inFlight.add(metered);
      return () => inFlight.delete(metered);
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
      await Promise.all(
        stopped.filter(({ at }) => at >= 0).map(({ meter }) => meter.fail(reason.status, { code: "shutdown" })),
      );
    },
  };
}
