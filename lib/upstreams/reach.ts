/** Whether a host can be reached at all. `fetch` does not tell a connection that is not made from an answer that is late. */
import { type AddressGuard, addressPolicy } from "./address_guard.ts";
import { Dialer } from "../http1/mod.ts";

/** Host and port of an upstream. */
export interface HostAddress {
  hostname: string;
  port: number;
  tls: boolean;
}

/** Knocks at an address. @throws where no connection can be made, and what the signal was aborted with */
export type Knock = (address: HostAddress, signal: AbortSignal) => Promise<void>;

/** One host, as all calls of a transport see it. */
export interface Host {
  /** When it last gave a sign of life, in milliseconds of `performance.now()`; before everything where it never did. */
  readonly aliveAt: number;
  /** It gave a sign of life. */
  alive(): void;
  /** Asks it for one, unless somebody is doing so; not for longer than `forMs`. */
  knock(forMs: number): void;
}

/** The hosts of one transport. */
export interface Hosts {
  /** The host of an address. */
  of(url: string): Host;
  /** Ends all knocking. */
  close(): void;
}

/** Variables that name a proxy: what is behind it cannot be knocked at. */
const PROXIES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((name) => [name, name.toLowerCase()]);

/**
 * Starts without knowing any host. `knock` absent: a connection is made, with TLS to the end of the handshake, where the
 * guard allows it.
 */
export function createHosts(knock?: Knock, guard?: AddressGuard): Hosts {
  const dialers: Dialer[] = [];
  const hosts = new Map<string, Host>();
  const knocking = new Set<AbortController>();
  return {
    of(url) {
      const { protocol, hostname, host: name, port } = new URL(url);
      const key = `${protocol}//${name}`;
      const known = hosts.get(key);
      if (known !== undefined) return known;
      const address = {
        hostname: hostname.replace(/^\[(.*)\]$/, "$1"),
        port: port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
        tls: protocol === "https:",
      };
      const host = createHost(knocks(address), knocking);
      hosts.set(key, host);
      return host;
    },
    close() {
      for (const attempt of knocking) attempt.abort();
      for (const dialer of dialers) dialer.close();
    },
  };

  function knocks(address: HostAddress): (signal: AbortSignal) => Promise<void> {
    if (knock !== undefined) return (signal) => knock(address, signal);
    const dialer = new Dialer(address, addressPolicy({ guard }));
    dialers.push(dialer);
    return (signal) => connect(dialer, signal);
  }
}

function createHost(knock: (signal: AbortSignal) => Promise<void>, knocking: Set<AbortController>): Host {
  let aliveAt = -Infinity;
  let busy = false;
  const alive = () => void (aliveAt = performance.now());
  return {
    get aliveAt() {
      return aliveAt;
    },
    alive,
    knock(forMs) {
      if (busy) return;
      busy = true;
      const attempt = new AbortController();
      knocking.add(attempt);
      const timer = setTimeout(() => attempt.abort(), forMs);
      // That nobody opens is told by time alone: a refusal is an answer, which the call itself gets too.
      knock(attempt.signal).then(alive, () => attempt.signal.aborted || alive()).finally(() => {
        clearTimeout(timer);
        knocking.delete(attempt);
        busy = false;
      });
    },
  };
}

/** A connection that is closed as soon as it is made. Where a proxy is in use, everything counts as reached. */
async function connect(dialer: Dialer, signal: AbortSignal): Promise<void> {
  if (PROXIES.some((name) => (Deno.env.get(name) ?? "") !== "")) return;
  (await dialer.dial(signal)).close();
}
