/**
 * URLs for `fetch` whose hosts were judged. Over plain HTTP/1.1 the URL is that of the very address. Over TLS the runtime
 * looks the name up again, and a host that is swapped in between has no certificate for it: it gets no request.
 */
import { isAddress } from "../access/networks.ts";
import { type AddressGuard, allowedAddresses } from "./address_guard.ts";
import { proxyFor } from "./proxies.ts";

/** How long a judgement holds, in milliseconds. */
const JUDGED_MS = 30_000;

/** Time for one of several addresses to take a connection, in milliseconds. */
const TRY_MS = 2_000;

/** Where a request goes: the URL, and the header `host` where it differs from the URL's. */
export interface PinnedUrl {
  url: string;
  headers: Readonly<Record<string, string>>;
}

/** URLs by those of the configuration. */
export interface PinnedUrls {
  /** @throws {BlockedAddress}; what the lookup says */
  of(url: string): Promise<PinnedUrl>;
  /** Has a name looked up again: it could not be connected to where it was. */
  forget(url: string): void;
}

/** @param pins false: names are judged, and the runtime looks them up again */
export function createPinnedUrls({ guard, pins }: { guard: AddressGuard | undefined; pins: boolean }): PinnedUrls {
  const judged = new Map<string, { address: string | undefined; until: number }>();

  /** The address to connect to; `undefined` where the name is to be used. */
  async function judge(url: URL): Promise<string | undefined> {
    const hostname = url.hostname.replace(/^\[(.*)\]$/, "$1");
    const isProxied = proxyFor(url.href, (name) => Deno.env.get(name)) !== undefined;
    // A proxy looks names up by itself.
    if (isProxied && !isAddress(hostname)) return undefined;
    const addresses = await allowedAddresses(hostname, { guard });
    if (isProxied || !pins || url.protocol !== "http:" || isAddress(hostname)) return undefined;
    return await firstOpen(addresses, url.port === "" ? 80 : Number(url.port));
  }

  return {
    async of(text) {
      const url = new URL(text);
      let known = judged.get(url.origin);
      if (known === undefined || known.until < performance.now()) {
        known = { address: await judge(url), until: performance.now() + JUDGED_MS };
        judged.set(url.origin, known);
      }
      const { address } = known;
      if (address === undefined) return { url: text, headers: {} };
      const headers = { host: url.host };
      url.hostname = address.includes(":") ? `[${address}]` : address;
      return { url: url.href, headers };
    },
    forget: (url) => void judged.delete(new URL(url).origin),
  };
}

/** The first of several addresses that takes a connection; where none does, the first. */
async function firstOpen(addresses: readonly string[], port: number): Promise<string | undefined> {
  const [first, ...others] = addresses;
  if (others.length === 0) return first;
  for (const hostname of addresses) {
    try {
      (await Deno.connect({ hostname, port, signal: AbortSignal.timeout(TRY_MS) })).close();
      return hostname;
    } catch {
      // The next one may.
    }
  }
  return first;
}
