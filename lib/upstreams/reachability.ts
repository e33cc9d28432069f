/** Distinguishes unreachable hosts from slow answers, because `fetch` does not. */
import { type AddressGuard, addressPolicy } from "./address_guard.ts";
import { type HostAddress, hostAddressOf } from "../host_address.ts";
import { Dialer } from "../http1/mod.ts";
import { proxyFor } from "./proxies.ts";

/** Opens a connection to an address and closes it. @throws if that fails; the signal's reason after an abort */
export type ProbeHost = (address: HostAddress, signal: AbortSignal) => Promise<void>;

/** Reachability of one host, shared by all calls of a transport. */
export interface HostReachability {
  /** Reports a sign of life. */
  alive(): void;
  /** Calls `listener` once, at the next sign of life. The returned function removes it. */
  nextSign(listener: () => void): () => void;
  /** Probes the host for at most `forMs`, unless a probe is running. */
  probe(forMs: number): void;
}

/** The hosts of one transport. */
export interface HostProbes {
  of(url: string): HostReachability;
  /** Aborts all probes. */
  close(): void;
}

/**
 * Creates probes without any hosts.
 * @param probe absent: opens a connection, with TLS up to the end of the handshake, if the guard allows the address
 */
export function createHostProbes(probe?: ProbeHost, guard?: AddressGuard): HostProbes {
  const dialers: Dialer[] = [];
  const hosts = new Map<string, HostReachability>();
  const probing = new Set<AbortController>();
  return {
    of(text) {
      const url = new URL(text);
      const host = hosts.get(url.origin) ?? createHost(probeOf(url), probing);
      hosts.set(url.origin, host);
      return host;
    },
    close() {
      for (const attempt of probing) attempt.abort();
      for (const dialer of dialers) dialer.close();
    },
  };

  function probeOf(url: URL): (signal: AbortSignal) => Promise<void> {
    const address = hostAddressOf(url);
    if (probe !== undefined) return (signal) => probe(address, signal);
    const dialer = new Dialer(address, addressPolicy({ guard }));
    dialers.push(dialer);
    return async (signal) => {
      // Only the proxy can reach the host, so every host behind a proxy counts as reachable.
      if (proxyFor(url.href, (name) => Deno.env.get(name)) === undefined) (await dialer.dial(signal)).close();
    };
  }
}

function createHost(probe: (signal: AbortSignal) => Promise<void>, probing: Set<AbortController>): HostReachability {
  const listeners = new Set<() => void>();
  let busy = false;
  const alive = () => {
    for (const listener of listeners) listener();
    listeners.clear();
  };
  return {
    alive,
    nextSign(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    probe(forMs) {
      if (busy) return;
      busy = true;
      const attempt = new AbortController();
      probing.add(attempt);
      const timer = setTimeout(() => attempt.abort(), forMs);
      // Only a timeout means unreachable. A refused connection is a sign of life, and the call itself gets that error,
      // too.
      probe(attempt.signal).then(alive, () => attempt.signal.aborted || alive()).finally(() => {
        clearTimeout(timer);
        probing.delete(attempt);
        busy = false;
      });
    },
  };
}
