/** Proxies on the way out: `fetch` obeys variables of the environment that one easily forgets. */
import { type Finding, notesOn } from "./finding.ts";

type Env = (name: string) => string | undefined;

/** The proxy for an address, as `fetch` reads the environment; `undefined` for none. It may hold a password. */
export function proxyFor(url: string, env: Env): string | undefined {
  const { protocol, hostname } = new URL(url);
  const read = (name: string) => env(name.toLowerCase()) || env(name) || undefined;
  const proxy = (protocol === "https:" ? read("HTTPS_PROXY") : read("HTTP_PROXY")) ?? read("ALL_PROXY");
  if (proxy === undefined) return undefined;
  const except = (read("NO_PROXY") ?? "").split(",").map((entry) => entry.trim()).filter((entry) => entry !== "");
  const bare = hostname.replace(/^\[(.*)\]$/, "$1");
  return except.some((entry) => covers(entry.replace(/^\./, ""), bare)) ? undefined : proxy;
}

/** A name covers itself and what ends with it, a network its addresses. */
function covers(entry: string, hostname: string): boolean {
  if (hostname === entry || hostname.endsWith(`.${entry}`)) return true;
  const [network = "", bits] = entry.split("/");
  const [of, inside] = [ipv4(network), ipv4(hostname)];
  if (bits === undefined || of === undefined || inside === undefined) return false;
  const shift = 32 - Number(bits);
  return shift >= 32 || of >>> shift === inside >>> shift;
}

function ipv4(text: string): number | undefined {
  const parts = text.split(".").map(Number);
  if (parts.length !== 4 || parts.some((part) => !Number.isInteger(part) || part < 0 || part > 255)) return undefined;
  return parts.reduce((sum, part) => (sum << 8 | part) >>> 0, 0);
}

/** The proxy without user and password. */
export function proxyName(proxy: string): string {
  const url = URL.parse(proxy.includes("://") ? proxy : `http://${proxy}`);
  return url === null ? "a proxy whose address cannot be read" : `${url.protocol}//${url.host}`;
}

/** Looks at the variables. */
export function lookAtProxies(upstreams: readonly { name: string; url: string }[], env: Env): Finding[] {
  const notes = notesOn("proxies on the way out");
  for (const { name, url } of upstreams) {
    const proxy = proxyFor(url, env);
    if (proxy === undefined) continue;
    const { hostname } = new URL(url);
    const text = `Upstream "${name}" is reached through ${proxyName(proxy)}`;
    if (/^(localhost|127\.|10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|\[?::1)/.test(hostname)) {
      notes.doubt(`${text}, although it is near (${hostname})`, `Add ${hostname} to NO_PROXY, unless it is meant so`);
    } else notes.ok(text);
  }
  if (notes.found.length === 0 && upstreams.length > 0) notes.ok("None: every upstream is reached directly");
  if ((env("NO_PROXY") ?? env("no_proxy") ?? "").split(",").map((entry) => entry.trim()).includes("*")) {
    notes.doubt("NO_PROXY is *, which has no effect here", "Name hosts and networks, or unset the proxy itself");
  }
  return notes.found;
}
