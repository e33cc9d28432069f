/** Proxies on the way out, as `fetch` takes them from the environment. */
import { isAddress, isWithin } from "../access/networks.ts";
import type { ReadEnvironment } from "../secret.ts";

/** The proxy for an address; `undefined` for none. It may hold a password. */
export function proxyFor(url: string, env: ReadEnvironment): string | undefined {
  const { protocol, hostname } = new URL(url);
  const read = (name: string) => env(name) || env(name.toLowerCase()) || undefined;
  const proxy = read("ALL_PROXY") ?? (protocol === "https:" ? read("HTTPS_PROXY") : read("HTTP_PROXY"));
  if (proxy === undefined || isExempt(hostname.replace(/^\[(.*)\]$/, "$1"), env)) return undefined;
  return proxy;
}

/** The variable in capitals counts alone, even where it is empty. */
function isExempt(host: string, env: ReadEnvironment): boolean {
  const entries = (env("NO_PROXY") ?? env("no_proxy") ?? "").split(",").map((entry) => entry.trim());
  if (!isAddress(host)) return entries.some((entry) => entry === "*" || coversName(entry, host));
  // An address is held against addresses alone. IPv4 within IPv6 is not taken for IPv4 here.
  return !host.startsWith("::ffff:") && isWithin(host, entries);
}

/** A name covers itself and what ends with it. */
function coversName(entry: string, host: string): boolean {
  const name = entry.replace(/^\./, "");
  return name !== "" && (host === name || host.endsWith(`.${name}`));
}
