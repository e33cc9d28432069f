/** Guards the pages of the console: they require a session, or lead to one. */
import { type ConsoleSession, readSession } from "../access/console_session.ts";
import { isLoopbackAddress, isLoopbackHost } from "../access/networks.ts";
import { SIGN_IN_PATH } from "../access/sign_in_link.ts";
import type { AdminConfig } from "../config.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import { type GuardedRequest, peerOf } from "./client_tracker.ts";
import type { HeaderValues } from "./head.ts";

/** Headers that only proxies send. */
const PROXY_HEADERS = ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "forwarded", "via"];

/** Returns whether there is a console for a request. The one that only sign-in links open is for this machine alone. */
export function hasConsole({ head, info, gateway: { config, localAdmin } }: GuardedRequest): boolean {
  if (config.admin !== undefined) return true;
  return localAdmin !== undefined && isFromThisMachine({ head, info }) && namesThisMachine(head);
}

/** True for a caller on this machine that no proxy is in front of. */
export function isFromThisMachine({ head, info }: Pick<GuardedRequest, "head" | "info">): boolean {
  const peer = peerOf(info);
  return peer !== undefined && isLoopbackAddress(peer) && PROXY_HEADERS.every((name) => head.get(name) === null);
}

/**
 * True if the host that the browser believes to talk to is this machine. A name in a foreign DNS zone that is made to point
 * here (DNS rebinding) is none.
 */
function namesThisMachine(head: GuardedRequest["head"]): boolean {
  const url = URL.parse(`http://${head.get("host") ?? ""}`);
  return url !== null && isLoopbackHost(url.hostname);
}

/** The session of a request; undefined without a valid one, and without an admin side. */
export async function sessionOf(
  { head, gateway }: { head: HeaderValues; gateway: Gateway },
): Promise<ConsoleSession | undefined> {
  const admin = adminOf(gateway);
  if (admin === undefined) return undefined;
  return await readSession(head.get("cookie"), { admin, now: gateway.now(), ended: gateway.endedSessions });
}

/** The admin side that the console's sessions depend on; absent where there is no console. */
function adminOf({ config, localAdmin }: Pick<Gateway, "config" | "localAdmin">): AdminConfig | undefined {
  return config.admin ?? localAdmin;
}

/** As `adminOf`, for the routes of the console, which are not served without one. */
export function requireAdmin(gateway: Pick<Gateway, "config" | "localAdmin">): AdminConfig {
  const admin = adminOf(gateway);
  if (admin === undefined) throw new TypeError("Cannot sign in: there is no console");
  return admin;
}

/** Sends a browser without a session to the sign-in page. */
export function redirectToSignIn(): Response {
  return new Response(null, { status: 303, headers: { location: SIGN_IN_PATH, "cache-control": "no-store" } });
}

/** @throws {GatewayError} `forbidden` for a request of a viewer that may change something */
export function requireReading({ method }: Pick<Request, "method">): void {
  if (method === "GET" || method === "HEAD") return;
  throw new GatewayError("forbidden", "The viewer key reads everything and changes nothing: use the admin key");
}
