/**
 * Throttles wrong credentials by address: after too many, the address gets status 429 for a while. Valid credentials
 * are checked first and never throttled, since clients may share an address.
 */
import { clientNetwork, isLoopbackAddress } from "./networks.ts";

/** Wrong credentials that one address may send within a window. */
const MAX_FAILURES = 20;

/** Length of a window, in milliseconds. */
const WINDOW_MS = 60_000;

/** Most addresses counted at a time. The oldest are evicted, which bounds the memory. */
const MAX_ADDRESSES = 10_000;

/** Result of a failed attempt. */
export interface FailedAttempt {
  /** Milliseconds until the address may try again; present if it is throttled. */
  retryAfterMs?: number;
  /** True for the last attempt before throttling begins. */
  isLast?: boolean;
}

/** Counts wrong credentials by address; `undefined` stands for an unknown address. */
export interface FailedAttempts {
  /** Counts a wrong credential. */
  failed(address: string | undefined, options?: { countsOwn?: boolean }): FailedAttempt;
  /** Returns the milliseconds until a throttled address may try again. Counts nothing. */
  retryAfterMs(address: string | undefined): number | undefined;
}

interface Watched {
  /** Time of its first wrong credential, by the monotonic clock. */
  since: number;
  count: number;
}

/** Creates an empty counter. @param monotonic monotonic clock in milliseconds */
export function createFailedAttempts({ monotonic }: { monotonic: () => number }): FailedAttempts {
  /** By client network, the oldest first. */
  const watched = new Map<string, Watched>();

  function find(address: string | undefined): Watched | undefined {
    if (watched.size === 0 || address === undefined) return undefined;
    const network = clientNetwork(address);
    const found = watched.get(network);
    if (found === undefined || monotonic() - found.since < WINDOW_MS) return found;
    watched.delete(network);
    return undefined;
  }

  function watch(address: string): Watched {
    for (const [network, { since }] of watched) {
      if (watched.size < MAX_ADDRESSES && monotonic() - since < WINDOW_MS) break;
      watched.delete(network);
    }
    const entry = { since: monotonic(), count: 0 };
    watched.set(clientNetwork(address), entry);
    return entry;
  }

  function retryAfterMs(address: string | undefined): number | undefined {
    const found = find(address);
    if (found === undefined || found.count < MAX_FAILURES) return undefined;
    return Math.max(1, found.since + WINDOW_MS - monotonic());
  }

  return {
    retryAfterMs,
    failed(address, { countsOwn = false } = {}) {
      // Local addresses belong to a proxy missing from `trusted_proxies`, with all clients behind it, or to a user of the
      // machine.
      if (address === undefined || !countsOwn && isLoopbackAddress(address)) return {};
      const waitMs = retryAfterMs(address);
      if (waitMs !== undefined) return { retryAfterMs: waitMs };
      const entry = find(address) ?? watch(address);
      return ++entry.count === MAX_FAILURES ? { isLast: true } : {};
    },
  };
}
