/** Our HTTP/1.1 client as a transport. */
import { createHttp1Client } from "../http1/mod.ts";
import { addressPolicy } from "./address_guard.ts";
import type { ReadEnvironment } from "../secret.ts";
import { proxyFor } from "./proxies.ts";
import type { Transport, TransportOptions } from "./transport.ts";

/** Options of an HTTP/1.1 transport. */
export interface Http1TransportOptions extends TransportOptions {
  /** Idle time of connections without a `keep-alive` header, in milliseconds. Default: the client's. */
  idleMs?: number;
}

/** Creates a transport over HTTP/1.1. Check the URL with `canServe` first. */
export function createHttp1Transport({ guard, ...options }: Http1TransportOptions = {}): Transport {
  return createHttp1Client({ ...options, addresses: addressPolicy({ guard }) });
}

/** False for URLs that need `fetch`: those behind a proxy, or with credentials or another scheme. */
export function canServe(url: string, env: ReadEnvironment): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, username, password } = new URL(url);
  const isPlain = (protocol === "http:" || protocol === "https:") && hostname !== "" && username === "" &&
    password === "";
  return isPlain && proxyFor(url, env) === undefined;
}
