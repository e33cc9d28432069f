/**
 * Wrong credentials by address. Too many of them are answered 429 for a while, and only they: right ones are looked up
 * first and never refused for them, since many clients may share an address.
 */
import { clientNetwork, isWithin } from "./networks.ts";

/** Wrong credentials that one address may send within a window. */
const MOST_FAILURES = 20;

/** Length of a window, in milliseconds. */
const WINDOW_MS = 60_000;

/** Addresses that are watched at one time. The oldest go first, so that nobody's many addresses take the memory. */
const MOST_ADDRESSES = 10_000;

/**
 * Addresses of the machine itself are not watched: who stands there is a proxy that `trusted_proxies` does not name, with
 * all clients behind it, or somebody who has the machine already.
 */
const OWN_ADDRESSES = ["127.0.0.0/8", "::1"];

/** What comes of a wrong credential. */
export interface FailedAttempt {
  /** When to try again, in milliseconds: its address has sent too many before. Absent: it has not. */
  retryAfterMs?: number;
  /** True for the last one before that: from now on they are throttled. */
  isLast?: boolean;
}

/** Wrong credentials, counted by the address they came from. An address is `undefined` where it is not known. */
export interface FailedAttempts {
  /** Counts a wrong credential. */
  failed(address: string | undefined): FailedAttempt;
  /** Milliseconds until an address that has sent too many may try again; counts nothing. */
  retryAfterMs(address: string | undefined): number | undefined;
}

/** What is known of one address. */
interface Watched {
  /** When its first wrong credential came, by the clock that only grows. */
  since: number;
  count: number;
}

/** Starts with nobody watched. `monotonic`: milliseconds that only grow. */
export function createFailedAttempts({ monotonic }: { monotonic: () => number }): FailedAttempts {
  /** By clientNetwork, the oldest first. */
  const watched = new Map<string, Watched>();

  function find(address: string | undefined): Watched | undefined {
    if (watched.size === 0 || address === undefined) return undefined;
    const place = clientNetwork(address);
    const found = watched.get(place);
    if (found === undefined || monotonic() - found.since < WINDOW_MS) return found;
    watched.delete(place);
    return undefined;
  }

  function watch(address: string): Watched {
    for (const [place, { since }] of watched) {
      if (watched.size < MOST_ADDRESSES && monotonic() - since < WINDOW_MS) break;
      watched.delete(place);
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
