/**
 * Checks the hosts of URLs for `fetch`. Over plain HTTP/1.1 the resulting URL contains the checked address. Over TLS
 * the runtime resolves the name again; if it then finds another host, that host has no valid certificate and gets no
 * request.
 */
import { isAddress } from "../access/networks.ts";
import { hostAddressOf } from "../host_address.ts";
import { type AddressGuard, allowedAddresses } from "./address_guard.ts";
import { proxyFor } from "./proxies.ts";

/** Time that a check is valid, in milliseconds. */
const CHECK_MS = 30_000;

/** Longest time for one of several addresses to accept a connection, in milliseconds. */
const CONNECT_MS = 2_000;

/** URL of a request, and its `host` header if that differs. */
export interface PinnedUrl {
  url: string;
  headers: Readonly<Record<string, string>>;
}

/** A cache of checked URLs. */
export interface PinnedUrls {
  /** Returns the checked URL for a configured URL. @throws {BlockedAddress}, or the resolver's error */
  of(url: string): Promise<PinnedUrl>;
  /** Discards a check, so that the name is resolved again after a failed connection. */
  forget(url: string): void;
}

/**
 * Creates the cache.
 * @param pins false if URLs keep their names after the check, and the runtime resolves them again
 */
export function createPinnedUrls({ guard, pins }: { guard: AddressGuard | undefined; pins: boolean }): PinnedUrls {
  const checks = new Map<string, { address: string | undefined; until: number }>();

  /** Checks a host. @returns the address to connect to; `undefined` to use the name */
  async function checkHost(url: URL): Promise<string | undefined> {
    const { hostname, port, tls } = hostAddressOf(url);
    const isProxied = proxyFor(url.href, (name) => Deno.env.get(name)) !== undefined;
    // A proxy resolves names itself, so they cannot be checked here.
    if (isProxied && !isAddress(hostname)) return undefined;
    const addresses = await allowedAddresses(hostname, { guard });
    if (isProxied || !pins || tls || isAddress(hostname)) return undefined;
    return await firstOpen(addresses, port);
  }

  return {
    async of(text) {
      const url = new URL(text);
      let check = checks.get(url.origin);
      if (check === undefined || check.until < performance.now()) {
        check = { address: await checkHost(url), until: performance.now() + CHECK_MS };
        checks.set(url.origin, check);
      }
      const { address } = check;
      if (address === undefined) return { url: text, headers: {} };
      const headers = { host: url.host };
      url.hostname = address.includes(":") ? `[${address}]` : address;
      return { url: url.href, headers };
    },
    forget: (url) => void checks.delete(new URL(url).origin),
  };
}

/** Returns the first address that accepts a connection, or the first of all. */
async function firstOpen(addresses: readonly string[], port: number): Promise<string | undefined> {
  const [first, ...others] = addresses;
  if (others.length === 0) return first;
  for (const hostname of addresses) {
    try {
      (await Deno.connect({ hostname, port, signal: AbortSignal.timeout(CONNECT_MS) })).close();
      return hostname;
    } catch {
      // Try the next address.
    }
  }
  return first;
}
