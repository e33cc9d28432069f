/** Finds the proxy for requests to upstreams in the environment, by the same rules as `fetch`. */
import { isAddress, isWithin } from "../access/networks.ts";
import { bareHostname } from "../host_address.ts";
import type { ReadEnvironment } from "../secret.ts";

/** Returns the proxy for a URL; `undefined` if there is none. The proxy's URL may contain a password. */
export function proxyFor(url: string, env: ReadEnvironment): string | undefined {
  const { protocol, hostname } = new URL(url);
  const read = (name: string) => env(name) || env(name.toLowerCase()) || undefined;
  const proxy = read("ALL_PROXY") ?? (protocol === "https:" ? read("HTTPS_PROXY") : read("HTTP_PROXY"));
  if (proxy === undefined || isExempt(bareHostname(hostname), env)) return undefined;
  return proxy;
}

/** Returns whether `NO_PROXY` exempts a host. If the variable in capitals is set, even to "", the other is ignored. */
function isExempt(host: string, env: ReadEnvironment): boolean {
  const entries = (env("NO_PROXY") ?? env("no_proxy") ?? "").split(",").map((entry) => entry.trim());
  if (!isAddress(host)) return entries.some((entry) => entry === "*" || coversName(entry, host));
  // An address matches only addresses and networks. IPv4 embedded in IPv6 does not match IPv4 entries.
  return !host.startsWith("::ffff:") && isWithin(host, entries);
}

/** Returns whether an entry covers a host: the same name, or a domain that the host belongs to. */
function coversName(entry: string, host: string): boolean {
  const name = entry.replace(/^\./, "");
  return name !== "" && (host === name || host.endsWith(`.${name}`));
}
