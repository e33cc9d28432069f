/** The address that clients use, as far as the console can know it. */
import type { Config } from "../config.ts";

/**
 * The browser's own address; where the admin side has a listener of its own, the host of that address with the port of
 * the clients' listener. A proxy in front may have another: people can change it.
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
