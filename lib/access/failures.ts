/** Credentials that are tried: who sends too many wrong ones is not listened to for a while. */
import { GatewayError } from "../errors.ts";
import { hashKey } from "./keys.ts";
import { isWithin, neighbourhood } from "./networks.ts";

/** Wrong credentials that one address may send within a window. */
const MOST_FAILURES = 20;

/** Length of a window, in milliseconds. */
const WINDOW_MS = 60_000;

/** Addresses that are watched at one time. The oldest go first, so that nobody's many addresses take the memory. */
const MOST_ADDRESSES = 10_000;

/** Credentials remembered to have worked from an address that is watched. */
const MOST_WORKING = 16;

/**
 * Addresses of the machine itself are not watched: who stands there is a proxy that `trusted_proxies` does not name, with
 * all clients behind it, or somebody who has the machine already.
 */
const OWN_ADDRESSES = ["127.0.0.0/8", "::1"];

/** Wrong credentials, counted by the address they came from. An address is `undefined` where nobody knows it. */
export interface Failures {
  /** False where no address is watched, so that there is nothing to ask. */
  readonly watching: boolean;
  /**
   * Asked before a credential is looked at. One that has worked from there while it was watched passes always: wrong
   * keys of a neighbour behind the same address do not lock it out.
   * @throws {GatewayError} `limited` for an address that has sent too many wrong ones
   */
  admit(address: string | undefined, credential: string): void;
  /** A credential was wrong. Gives true where it was one too many: the address is not listened to from now on. */
  failed(address: string | undefined): boolean | Promise<boolean>;
  /** A credential was right. Returns true where that is news from an address that is watched. */
  worked(address: string | undefined, credential: string): boolean;
}

/** What one isolate has seen: it knows at once. */
export interface OwnFailures extends Failures {
  failed(address: string | undefined): boolean;
}

/** What is known of one address. */
interface Watched {
  /** When its first wrong credential came, by the clock that only grows. */
  since: number;
  count: number;
  /** Hashes of credentials that have worked from there since. */
  working: Set<string>;
}

/** Starts with nobody watched. `monotonic`: milliseconds that only grow. */
export function createFailures({ monotonic }: { monotonic: () => number }): OwnFailures {
  /** By neighbourhood, the oldest first. */
  const watched = new Map<string, Watched>();

  function find(address: string | undefined): Watched | undefined {
    if (watched.size === 0 || address === undefined) return undefined;
    const place = neighbourhood(address);
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
    const entry = { since: monotonic(), count: 0, working: new Set<string>() };
    watched.set(neighbourhood(address), entry);
    return entry;
  }

  return {
    get watching() {
      return watched.size > 0;
    },
    admit(address, credential) {
      const found = find(address);
      if (found === undefined || found.count < MOST_FAILURES || found.working.has(hashKey(credential))) return;
      throw new GatewayError("limited", "Too many wrong API keys came from this address: try again later", {
        retryAfterMs: Math.max(1, found.since + WINDOW_MS - monotonic()),
      });
    },
    failed(address) {
      if (address === undefined || isWithin(address, OWN_ADDRESSES)) return false;
      const entry = find(address) ?? watch(address);
      return ++entry.count === MOST_FAILURES;
    },
    worked(address, credential) {
      const found = find(address);
      if (found === undefined || found.working.size >= MOST_WORKING) return false;
      const hash = hashKey(credential);
      const isNew = !found.working.has(hash);
      found.working.add(hash);
      return isNew;
    },
  };
}
