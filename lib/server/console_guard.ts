/** Guards the pages of the console: finds sessions, and decides for which requests there is a console at all. */
import { type ConsoleSession, readSession } from "../access/console_session.ts";
import { isLoopbackAddress, isLoopbackHost } from "../access/networks.ts";
import { SIGN_IN_PATH } from "../access/sign_in_link.ts";
import type { AdminConfig } from "../config.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import { type GuardedRequest, peerOf } from "./client_tracker.ts";
import { type Addressed, type HeaderValues, hostOf } from "./head.ts";

/** Headers that only proxies send. */
const PROXY_HEADERS = ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "forwarded", "via"];

/** Returns whether a request can use a console. Without an admin key, only requests from this machine can have one. */
export function hasConsole(guarded: GuardedRequest): boolean {
  const { config, localAdmin } = guarded.gateway;
  if (config.admin !== undefined) return true;
  return localAdmin !== undefined && isFromThisMachine(guarded) && namesThisMachine(guarded.addressed);
}

/** Returns whether a request comes from this machine and not through a proxy. */
export function isFromThisMachine({ head, info }: Pick<GuardedRequest, "head" | "info">): boolean {
  const peer = peerOf(info);
  return peer !== undefined && isLoopbackAddress(peer) && PROXY_HEADERS.every((name) => head.get(name) === null);
}

/**
 * Returns whether a request names this machine as its host. It protects against DNS rebinding, where a foreign name
 * resolves to this machine.
 */
function namesThisMachine(request: Addressed): boolean {
  const url = URL.parse(`http://${hostOf(request)}`);
  return url !== null && isLoopbackHost(url.hostname);
}

/** Returns the session of a request; undefined without a valid session, or if there is no console. */
export async function sessionOf(
  { head, gateway }: { head: HeaderValues; gateway: Gateway },
): Promise<ConsoleSession | undefined> {
  const admin = adminOf(gateway);
  if (admin === undefined) return undefined;
  return await readSession(head.get("cookie"), { admin, now: gateway.now(), ended: gateway.endedSessions });
}

/** Returns the admin settings that console sessions depend on; undefined if there is no console. */
function adminOf({ config, localAdmin }: Pick<Gateway, "config" | "localAdmin">): AdminConfig | undefined {
  return config.admin ?? localAdmin;
}

/** Returns the admin settings for routes of the console. @throws {TypeError} if there is no console */
export function requireAdmin(gateway: Pick<Gateway, "config" | "localAdmin">): AdminConfig {
  const admin = adminOf(gateway);
  if (admin === undefined) throw new TypeError("Cannot sign in: there is no console");
  return admin;
}

/** Returns the redirect to the sign-in page for a browser without a session. */
export function redirectToSignIn(): Response {
  return new Response(null, { status: 303, headers: { location: SIGN_IN_PATH, "cache-control": "no-store" } });
}

/** Checks that a viewer's request only reads. @throws {GatewayError} `forbidden` if its method may change something */
export function requireReading({ method }: Pick<Request, "method">): void {
  if (method === "GET" || method === "HEAD") return;
  throw new GatewayError("forbidden", "The viewer key reads everything and changes nothing: use the admin key");
}
