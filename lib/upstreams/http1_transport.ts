/** The HTTP/1.1 client as a transport. */
import { createHttp1Client } from "../http1/mod.ts";
import { addressPolicy } from "./address_guard.ts";
import { type Env, proxyFor } from "./proxies.ts";
import type { Transport, TransportOptions } from "./transport.ts";

/** How such a transport treats its connections. */
export interface Http1TransportOptions extends TransportOptions {
  /** How long an idle connection is kept whose host does not say, in milliseconds; absent: the client decides. */
  idleMs?: number;
}

/** A transport over HTTP/1.1 alone. `canServe` tells beforehand which URLs it cannot serve. */
export function createHttp1Transport({ guard, ...options }: Http1TransportOptions = {}): Transport {
  return createHttp1Client({ ...options, addresses: addressPolicy({ guard }) });
}

/** False where a request must go over `fetch`: through a proxy, or to a URL that is not a plain HTTP one. */
export function canServe(url: string, env: Env): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, username, password } = new URL(url);
  const isPlain = (protocol === "http:" || protocol === "https:") && hostname !== "" && username === "" &&
    password === "";
  return isPlain && proxyFor(url, env) === undefined;
}
