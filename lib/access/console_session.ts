/**
 * Sign-in sessions of the console. A session is a signed cookie, so every node that has the admin key accepts it, and a
 * changed admin key ends it.
 */
import { Buffer } from "node:buffer";
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { AdminConfig } from "../config.ts";

/** Role of an operator: a viewer can see everything and change nothing. */
export type OperatorRole = "admin" | "viewer";

/** A valid session. */
export interface ConsoleSession {
  /** Random id. */
  readonly id: string;
  readonly role: OperatorRole;
  /** CSRF token for forms of this session. */
  readonly csrf: string;
  /** End of the session, Unix time in milliseconds. */
  readonly expiresAt: number;
}

/** Name of the cookie. */
export const SESSION_COOKIE = "sluice_session";

/** Length of a session: 12 hours, in milliseconds. */
export const SESSION_MS = 12 * 3_600_000;

/** Longest value of a cookie that is checked, in characters. */
const LONGEST_VALUE = 256;

/** Begins a session. @returns the value of its cookie */
export function beginSession(role: OperatorRole, { admin, now }: { admin: AdminConfig; now: number }): string {
  const payload = `${role}.${now + SESSION_MS}.${randomBytes(18).toString("base64url")}`;
  return `${payload}.${sign(payload, keyOf(role, admin) ?? "")}`;
}

/** Reads the session from the `Cookie` header; undefined without a valid one. @param now Unix time in milliseconds */
export function readSession(
  cookies: string | null,
  { admin, now, ended }: { admin: AdminConfig; now: number; ended: EndedSessions },
): ConsoleSession | undefined {
  for (const cookie of (cookies ?? "").split(";")) {
    const [name, value = ""] = cookie.trim().split("=", 2);
    if (name !== SESSION_COOKIE || value.length > LONGEST_VALUE) continue;
    const [role = "", expires = "", id = "", signature = ""] = value.split(".");
    if (role !== "admin" && role !== "viewer") continue;
    const key = keyOf(role, admin);
    if (key === undefined || !isEqual(signature, sign(`${role}.${expires}.${id}`, key))) continue;
    const expiresAt = Number(expires);
    if (!(expiresAt > now) || ended.has(id)) continue;
    return { id, role, expiresAt, csrf: sign(`csrf.${id}`, key) };
  }
  return undefined;
}

/** Compares two texts in constant time. */
export function isEqual(a: string, b: string): boolean {
  const [first, second] = [Buffer.from(a), Buffer.from(b)];
  return first.length === second.length && timingSafeEqual(first, second);
}

/** Sessions that were signed out in this process before their time. */
export class EndedSessions {
  readonly #ids = new Map<string, number>();

  /** Ends a session. @param now Unix time in milliseconds */
  end({ id, expiresAt }: Pick<ConsoleSession, "id" | "expiresAt">, now: number): void {
    for (const [old, until] of this.#ids) if (until <= now) this.#ids.delete(old);
    this.#ids.set(id, expiresAt);
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }
}

/** Each role's sessions depend only on its own key: changing one key does not sign the other role out. */
function keyOf(role: OperatorRole, { hash, viewerHash }: AdminConfig): string | undefined {
  return role === "admin" ? hash : viewerHash;
}

function sign(text: string, key: string): string {
  return createHmac("sha256", `sluice console session ${key}`).update(text).digest("base64url");
}
