/** Which addresses the HTTP/1.1 client of our own can serve. */
import { type Env, proxyFor } from "../upstreams/proxies.ts";

/** False where a request must go over `fetch`: through a proxy, and to addresses that are not plain HTTP ones. */
export function canServe(url: string, env: Env): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, username, password } = new URL(url);
  const isPlain = (protocol === "http:" || protocol === "https:") && hostname !== "" && username === "" &&
    password === "";
  return isPlain && proxyFor(url, env) === undefined;
}
