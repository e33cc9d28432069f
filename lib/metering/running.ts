/** Requests that are under way: when the process ends, each of them must come to its end, and into the ledger. */
import type { GatewayError } from "../errors.ts";
import type { Meter } from "./meter.ts";

/** Requests under way. */
export interface Running {
  /**
   * Takes note of a request until its meter has ended.
   * @param stop ends its work early, with an error that tells the client why
   */
  add(meter: Pick<Meter, "fail" | "done">, stop: (reason: GatewayError) => void): void;
  /** Ends all of them early, without a charge. Resolves when they have ended; those that take too long are given up. */
  stop(reason: GatewayError): Promise<void>;
}

/** How long requests may take to end when they are told to, in milliseconds. */
const GRACE_MS = 1_000;

/** Starts with none. */
export function createRunning(graceMs = GRACE_MS): Running {
  const running = new Map<Pick<Meter, "fail" | "done">, (reason: GatewayError) => void>();
  return {
    add(meter, stop) {
      running.set(meter, stop);
      void meter.done.then(() => running.delete(meter));
    },
    async stop(reason) {
      for (const stop of running.values()) stop(reason);
      if (running.size === 0) return;
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, graceMs);
      await Promise.race([Promise.all([...running.keys()].map(({ done }) => done)), late.promise]);
      clearTimeout(timer);
      await Promise.all([...running.keys()].map((meter) => meter.fail(reason.status)));
    },
  };
}
