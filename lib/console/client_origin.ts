/** Guesses the address that clients use, for examples in the console. */
import type { Config } from "../config.ts";

/**
 * Returns the address that the browser uses; if the admin side has its own listener, with the port of the clients'
 * listener. It is wrong behind some proxies, so the operator can change it on the page.
 */
export function clientOrigin(
  { url, headers }: Pick<Request, "url" | "headers">,
  { listen, admin }: Pick<Config, "listen" | "admin">,
): string {
  const isSecure = url.startsWith("https:") || headers.get("x-forwarded-proto") === "https";
  const host = headers.get("host") ?? `${listen.hostname}:${listen.port}`;
  if (admin?.listen === undefined) return `${isSecure ? "https" : "http"}://${host}`;
  return `http://${host.replace(/:\d+$/, "")}:${listen.port}`;
}
