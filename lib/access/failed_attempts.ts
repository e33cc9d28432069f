/**
 * Throttles wrong credentials: an address that sends too many gets status 429 for a while. Valid credentials are
 * checked first and never throttled, because clients may share an address.
 */
import { clientNetwork, isLoopbackAddress } from "./networks.ts";

/** Wrong credentials that an address may send within a window. */
const MAX_FAILURES = 20;

const WINDOW_MS = 60_000;

/** Largest number of counted addresses, which bounds the memory. The oldest are forgotten first. */
const MAX_ADDRESSES = 10_000;

/** Result of a failed attempt. */
export interface FailedAttempt {
  /** Milliseconds until the address may try again; present if it is throttled. */
  retryAfterMs?: number;
  /** True if this was the last attempt before throttling begins; absent: no. */
  isLast?: boolean;
}

/** Counts wrong credentials by client address. An address of `undefined` is unknown and never throttled. */
export interface FailedAttempts {
  /** Counts a wrong credential. `countsOwn`: also from addresses of this machine; absent: these are never throttled. */
  failed(address: string | undefined, options?: { countsOwn?: boolean }): FailedAttempt;
  /** Returns the milliseconds until an address may try again; `undefined` if it is not throttled. Counts nothing. */
  retryAfterMs(address: string | undefined): number | undefined;
}

interface FailureCount {
  /** Time of the first wrong credential, by the monotonic clock. */
  since: number;
  count: number;
}

/** Creates the counts. @param monotonic time in milliseconds that never goes back */
export function createFailedAttempts({ monotonic }: { monotonic: () => number }): FailedAttempts {
  /** Counts of the current windows by client network, the oldest first. */
  const counts = new Map<string, FailureCount>();

  function findCount(address: string | undefined): FailureCount | undefined {
    if (counts.size === 0 || address === undefined) return undefined;
    const network = clientNetwork(address);
    const failures = counts.get(network);
    if (failures === undefined || monotonic() - failures.since < WINDOW_MS) return failures;
    counts.delete(network);
    return undefined;
  }

  function beginCount(address: string): FailureCount {
    for (const [network, { since }] of counts) {
      if (counts.size < MAX_ADDRESSES && monotonic() - since < WINDOW_MS) break;
      counts.delete(network);
    }
    const failures = { since: monotonic(), count: 0 };
    counts.set(clientNetwork(address), failures);
    return failures;
  }

  function retryAfterMs(address: string | undefined): number | undefined {
    const failures = findCount(address);
    if (failures === undefined || failures.count < MAX_FAILURES) return undefined;
    return Math.max(1, failures.since + WINDOW_MS - monotonic());
  }

  return {
    retryAfterMs,
    failed(address, { countsOwn = false } = {}) {
      // A loopback address belongs to a user of this machine, or to a proxy that `trusted_proxies` lacks and that sends
      // the requests of all clients.
      if (address === undefined || !countsOwn && isLoopbackAddress(address)) return {};
      const waitMs = retryAfterMs(address);
      if (waitMs !== undefined) return { retryAfterMs: waitMs };
      const failures = findCount(address) ?? beginCount(address);
      return ++failures.count === MAX_FAILURES ? { isLast: true } : {};
    },
  };
}
