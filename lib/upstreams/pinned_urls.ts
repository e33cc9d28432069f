/**
 * URLs for `fetch` with checked hosts. Over plain HTTP/1.1 the URL contains the checked address. Over TLS the runtime
 * resolves the name again; a host swapped in between has no valid certificate and gets no request.
 */
import { isAddress } from "../access/networks.ts";
import { type AddressGuard, allowedAddresses } from "./address_guard.ts";
import { proxyFor } from "./proxies.ts";

/** Lifetime of a check, in milliseconds. */
const CHECK_TTL_MS = 30_000;

/** Time for one of several addresses to accept a connection, in milliseconds. */
const TRY_MS = 2_000;

/** URL of a request, and its `host` header if that differs. */
export interface PinnedUrl {
  url: string;
  headers: Readonly<Record<string, string>>;
}

/** Checked URLs by configured URL. */
export interface PinnedUrls {
  /** @throws {BlockedAddress}, or the resolver's error */
  of(url: string): Promise<PinnedUrl>;
  /** Discards a check, so that the name is resolved again after a failed connection. */
  forget(url: string): void;
}

/** Creates the cache of checked URLs. @param pins false: only check names, and let the runtime resolve them again */
export function createPinnedUrls({ guard, pins }: { guard: AddressGuard | undefined; pins: boolean }): PinnedUrls {
  const checks = new Map<string, { address: string | undefined; until: number }>();

  /** Returns the address to connect to; `undefined` to use the name. */
  async function findPinnedAddress(url: URL): Promise<string | undefined> {
    const hostname = url.hostname.replace(/^\[(.*)\]$/, "$1");
    const isProxied = proxyFor(url.href, (name) => Deno.env.get(name)) !== undefined;
    // A proxy resolves names itself.
    if (isProxied && !isAddress(hostname)) return undefined;
    const addresses = await allowedAddresses(hostname, { guard });
    if (isProxied || !pins || url.protocol !== "http:" || isAddress(hostname)) return undefined;
    return await firstOpen(addresses, url.port === "" ? 80 : Number(url.port));
  }

  return {
    async of(text) {
      const url = new URL(text);
      let known = checks.get(url.origin);
      if (known === undefined || known.until < performance.now()) {
        known = { address: await findPinnedAddress(url), until: performance.now() + CHECK_TTL_MS };
        checks.set(url.origin, known);
      }
      const { address } = known;
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
      (await Deno.connect({ hostname, port, signal: AbortSignal.timeout(TRY_MS) })).close();
      return hostname;
    } catch {
      // Try the next address.
    }
  }
  return first;
}
