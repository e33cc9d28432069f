/** Guesses the address that the browser and clients use. */
import type { Config } from "../config.ts";
import { type Addressed, hostOf } from "../server/head.ts";

/**
 * Returns the address that the browser uses; if the admin side has its own listener, with the port of the clients'
 * listener. It is wrong behind some proxies, so the operator can change it on the page.
 */
export function clientOrigin(
  request: Addressed,
  { listen, admin }: Pick<Config, "listen" | "admin">,
): string {
  const host = hostOf(request);
  if (admin?.listen === undefined) return `${usesTls(request) ? "https" : "http"}://${host}`;
  return `http://${host.replace(/:\d+$/, "")}:${listen.port}`;
}

/** Returns whether the request or a proxy says that the browser uses TLS. */
export function usesTls({ url, headers }: Addressed): boolean {
  return url.startsWith("https:") || headers.get("x-forwarded-proto") === "https";
}
