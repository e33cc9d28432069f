/** Checks the proxies for outgoing connections, which environment variables set. */
import type { ReadEnvironment } from "../secret.ts";
import { proxyFor } from "../upstreams/proxies.ts";
import { isAddress, isLoopbackHost, isWithin, PRIVATE_NETWORKS } from "../access/networks.ts";
import { bareHostname } from "../host_address.ts";
import { createNotes, type Finding } from "./finding.ts";

/** Returns the address of a proxy without user and password. */
function proxyName(proxy: string): string {
  const url = URL.parse(proxy.includes("://") ? proxy : `http://${proxy}`);
  return url === null ? "a proxy whose address cannot be read" : `${url.protocol}//${url.host}`;
}

/** Notes the proxy of each upstream, and warns about proxies for local addresses. */
export function checkProxies(upstreams: readonly { name: string; url: string }[], env: ReadEnvironment): Finding[] {
  const notes = createNotes("proxies on the way out");
  let addressCount = 0;
  for (const { name, url } of upstreams) {
    const proxy = proxyFor(url, env);
    if (proxy === undefined) continue;
    const hostname = bareHostname(new URL(url).hostname);
    if (isAddress(hostname)) addressCount++;
    const text = `Upstream "${name}" is reached through ${proxyName(proxy)}`;
    if (isLoopbackHost(hostname) || isWithin(hostname, PRIVATE_NETWORKS)) {
      notes.warn(
        `${text}, although it is a local address (${hostname})`,
        `Add ${hostname} to NO_PROXY, unless this is intended`,
      );
    } else notes.ok(text);
  }
  if (notes.found.length === 0 && upstreams.length > 0) notes.ok("None: every upstream is reached directly");
  const exemptsAll = (env("NO_PROXY") ?? env("no_proxy") ?? "").split(",").map((entry) => entry.trim()).includes("*");
  if (exemptsAll && addressCount > 0) {
    notes.warn("NO_PROXY is *, which exempts names but not addresses", "List networks too, or unset the proxy");
  }
  return notes.found;
}
