/**
 * Throttles wrong credentials by address: too many of them are answered 429 for a while. Valid credentials are looked up
 * first and are never refused for it, as many clients may share an address.
 */
import { clientNetwork, isWithin } from "./networks.ts";

/** Wrong credentials that one address may send within a window. */
const MOST_FAILURES = 20;

/** Length of a window, in milliseconds. */
const WINDOW_MS = 60_000;

/** Most addresses that are counted at one time. The oldest are dropped first, which bounds the memory. */
const MOST_ADDRESSES = 10_000;

/**
 * Addresses of the machine itself are not counted: they belong to a proxy that `trusted_proxies` does not name, with all
 * clients behind it, or to a user of the machine.
 */
const OWN_ADDRESSES = ["127.0.0.0/8", "::1"];

/** Consequence of a wrong credential. */
export interface FailedAttempt {
  /** Milliseconds until the address may try again, where it has sent too many before. */
  retryAfterMs?: number;
  /** True for the last attempt before throttling begins. */
  isLast?: boolean;
}

/** Counts wrong credentials by address. An address is `undefined` where it is not known. */
export interface FailedAttempts {
  /** Counts a wrong credential. */
  failed(address: string | undefined): FailedAttempt;
  /** Returns the milliseconds until an address that has sent too many may try again. Counts nothing. */
  retryAfterMs(address: string | undefined): number | undefined;
}

/** Wrong credentials of one address. */
interface Watched {
  /** Time of its first wrong credential, by the monotonic clock. */
  since: number;
  count: number;
}

/** Starts empty. @param monotonic milliseconds of a monotonic clock */
export function createFailedAttempts({ monotonic }: { monotonic: () => number }): FailedAttempts {
  /** By the network of the client, the oldest first. */
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
      if (watched.size < MOST_ADDRESSES && monotonic() - since < WINDOW_MS) break;
      watched.delete(network);
    }
    const entry = { since: monotonic(), count: 0 };
    watched.set(clientNetwork(address), entry);
    return entry;
  }

  function retryAfterMs(address: string | undefined): number | undefined {
    const found = find(address);
    if (found === undefined || found.count < MOST_FAILURES) return undefined;
    return Math.max(1, found.since + WINDOW_MS - monotonic());
  }

  return {
    retryAfterMs,
    failed(address) {
      if (address === undefined || isWithin(address, OWN_ADDRESSES)) return {};
      const waitMs = retryAfterMs(address);
      if (waitMs !== undefined) return { retryAfterMs: waitMs };
      const entry = find(address) ?? watch(address);
      return ++entry.count === MOST_FAILURES ? { isLast: true } : {};
    },
  };
}
