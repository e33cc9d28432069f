/** Guards the pages of the console: they require a session, or lead to one. */
import { type ConsoleSession, readSession } from "../access/console_session.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { HeaderValues } from "./head.ts";

/** Path of the page where operators sign in. */
export const SIGN_IN_PATH = "/admin/console/sign-in";

/** The session of a request; undefined without a valid one, and without an admin side. */
export async function sessionOf(
  { head, gateway: { config: { admin }, endedSessions: ended, now } }: { head: HeaderValues; gateway: Gateway },
): Promise<ConsoleSession | undefined> {
  return admin === undefined ? undefined : await readSession(head.get("cookie"), { admin, now: now(), ended });
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
