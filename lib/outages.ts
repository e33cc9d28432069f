/** Decides which outages of another server are logged, and when. */
import type { StartTimer } from "./start_timer.ts";

/** Time that a change must last before it is logged, in milliseconds, so that a flapping server is one outage. */
const SETTLED_MS = 1_000;

/** Dependencies. */
export interface OutageParts<Cause> {
  /** Returns whether the server is reachable. */
  isUp: () => boolean;
  /** Logs the start of an outage. @param cause the last failure */
  logDown: (cause: Cause) => void;
  /** Logs the end of an outage. @param downMs from the first failure to the answer after the last one, in milliseconds */
  logUp: (downMs: number) => void;
  /** Monotonic time in milliseconds. */
  monotonic: () => number;
  later: StartTimer;
}

/** The log of outages. */
export interface Outages<Cause> {
  /** Must be called when the server becomes unreachable. May be called for each failure until it is reachable again. */
  fell(cause: Cause): void;
  /** Must be called when the server answers again. */
  rose(): void;
  /** Stops logging. */
  close(): void;
}

/**
 * Creates the log of outages. An outage lasts from the first failure until the server has been reachable for a second.
 * Outages that are shorter than a second are not logged.
 */
export function createOutages<Cause>(
  { isUp, logDown, logUp, monotonic, later }: OutageParts<Cause>,
): Outages<Cause> {
  let outage: { began: number; cause: Cause; rose: number; isLogged: boolean } | undefined;
  let cancel = () => {};

  function settleDown(): void {
    if (outage === undefined || outage.isLogged || isUp()) return;
    outage.isLogged = true;
    logDown(outage.cause);
  }

  function settleUp(): void {
    if (outage?.isLogged === true) logUp(Math.round(outage.rose - outage.began));
    outage = undefined;
  }

  return {
    fell(cause) {
      cancel();
      outage ??= { began: monotonic(), cause, rose: 0, isLogged: false };
      outage.cause = cause;
      const waitMs = outage.began + SETTLED_MS - monotonic();
      if (waitMs <= 0) settleDown();
      else cancel = later(settleDown, waitMs);
    },
    rose() {
      cancel();
      if (outage === undefined) return;
      outage.rose = monotonic();
      cancel = later(settleUp, SETTLED_MS);
    },
    close: () => cancel(),
  };
}
