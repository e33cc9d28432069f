/** Distinguishes unreachable hosts from slow answers, because `fetch` does not. */
import { type AddressGuard, addressPolicy } from "./address_guard.ts";
import { Dialer } from "../http1/mod.ts";

/** Host and port of an upstream. */
export interface ProbedAddress {
  hostname: string;
  port: number;
  tls: boolean;
}

/** Opens a connection to an address and closes it. @throws if that fails; the signal's reason after an abort */
export type ProbeHost = (address: ProbedAddress, signal: AbortSignal) => Promise<void>;

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

/** Environment variables of proxies. Hosts behind a proxy cannot be probed. */
const PROXY_VARIABLES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((name) => [name, name.toLowerCase()]);

/**
 * Creates probes without any hosts.
 * @param probe absent: opens a connection, with TLS up to the end of the handshake, if the guard allows the address
 */
export function createHostProbes(probe?: ProbeHost, guard?: AddressGuard): HostProbes {
  const dialers: Dialer[] = [];
  const hosts = new Map<string, HostReachability>();
  const probing = new Set<AbortController>();
  return {
    of(url) {
      const { protocol, hostname, host: name, port } = new URL(url);
      const key = `${protocol}//${name}`;
      const existing = hosts.get(key);
      if (existing !== undefined) return existing;
      const address = {
        hostname: hostname.replace(/^\[(.*)\]$/, "$1"),
        port: port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
        tls: protocol === "https:",
      };
      const host = createHost(probeOf(address), probing);
      hosts.set(key, host);
      return host;
    },
    close() {
      for (const attempt of probing) attempt.abort();
      for (const dialer of dialers) dialer.close();
    },
  };

  function probeOf(address: ProbedAddress): (signal: AbortSignal) => Promise<void> {
    if (probe !== undefined) return (signal) => probe(address, signal);
    const dialer = new Dialer(address, addressPolicy({ guard }));
    dialers.push(dialer);
    return (signal) => connect(dialer, signal);
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

/** Opens and closes a connection. With a proxy, every host counts as reachable. */
async function connect(dialer: Dialer, signal: AbortSignal): Promise<void> {
  if (PROXY_VARIABLES.some((name) => (Deno.env.get(name) ?? "") !== "")) return;
  (await dialer.dial(signal)).close();
}
