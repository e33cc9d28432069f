/**
 * Sessions of operators who are signed in to the console. A session is a cookie signed with the admin key, so every
 * node with the same key accepts it, and a change of the key ends it.
 */
import { Buffer } from "node:buffer";
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { AdminConfig } from "../config.ts";
import type { ChangeAuthor, OperatorStore } from "../store/operators.ts";

/** Role of an operator: a viewer can see everything and change nothing. */
export type OperatorRole = "admin" | "viewer";

/** Ways to sign in. A one-time link gives the role `admin`. */
export type SessionAuthor = Extract<ChangeAuthor, "admin_key" | "viewer_key" | "one_time_link">;

/** A valid session. */
export interface ConsoleSession {
  /** Random id of the session. */
  readonly id: string;
  readonly role: OperatorRole;
  /** The operator's way of signing in. */
  readonly author: SessionAuthor;
  /** Token that forms of this session must send, against cross-site request forgery. */
  readonly csrf: string;
  /** End of the session, Unix time in milliseconds. */
  readonly expiresAt: number;
}

/** Name of the session's cookie. */
export const SESSION_COOKIE = "sluice_session";

/** Duration of a session: 12 hours, in milliseconds. */
export const SESSION_MS = 12 * 3_600_000;

/** Longest cookie value that is checked, in characters. */
const MAX_COOKIE_CHARACTERS = 256;

/** Begins a session. @returns the value of its cookie */
export function beginSession(author: SessionAuthor, { admin, now }: { admin: AdminConfig; now: number }): string {
  const payload = `${author}.${now + SESSION_MS}.${randomBytes(18).toString("base64url")}`;
  return `${payload}.${sign(payload, keyOf(author, admin) ?? "")}`;
}

/**
 * Reads the session from the `Cookie` header; `undefined` if there is no valid one.
 * @param now Unix time in milliseconds
 */
export async function readSession(
  cookies: string | null,
  { admin, now, ended }: { admin: AdminConfig; now: number; ended: EndedSessions },
): Promise<ConsoleSession | undefined> {
  for (const cookie of (cookies ?? "").split(";")) {
    const [name, value = ""] = cookie.trim().split("=", 2);
    if (name !== SESSION_COOKIE || value.length > MAX_COOKIE_CHARACTERS) continue;
    const [author = "", expires = "", id = "", signature = ""] = value.split(".");
    if (author !== "admin_key" && author !== "viewer_key" && author !== "one_time_link") continue;
    const key = keyOf(author, admin);
    if (key === undefined || !isEqual(signature, sign(`${author}.${expires}.${id}`, key))) continue;
    const expiresAt = Number(expires);
    if (!(expiresAt > now) || await ended.has(id, now)) continue;
    const role = author === "viewer_key" ? "viewer" : "admin";
    return { id, role, author, expiresAt, csrf: sign(`csrf.${id}`, key) };
  }
  return undefined;
}

/** Compares two texts in constant time. */
export function isEqual(a: string, b: string): boolean {
  const [first, second] = [Buffer.from(a), Buffer.from(b)];
  return first.length === second.length && timingSafeEqual(first, second);
}

/** Time after which the list of ended sessions is read from the store again, in milliseconds. */
const REREAD_MS = 1_000;

/** Sessions that were signed out before they expired, on any node of the store. */
export class EndedSessions {
  readonly #store: Pick<OperatorStore, "endSession" | "endedSessions">;
  /** Expiry of each ended session, Unix time in milliseconds, by its id. */
  readonly #ids = new Map<string, number>();
  #readAt = -Infinity;
  #reading: Promise<void> | undefined;

  constructor(store: Pick<OperatorStore, "endSession" | "endedSessions">) {
    this.#store = store;
  }

  /**
   * Ends a session, on this node immediately and on others within a second.
   * @param now Unix time in milliseconds
   * @throws if the store cannot be written; the session has still ended on this node
   */
  async end({ id, expiresAt }: Pick<ConsoleSession, "id" | "expiresAt">, now: number): Promise<void> {
    this.#ids.set(id, expiresAt);
    await this.#store.endSession({ id, expiresAt }, now);
  }

  /**
   * Returns whether a session was signed out. It reads the store at most once a second. While the store is unreachable,
   * only the sessions that it knew before, and those that ended on this node, count.
   */
  async has(id: string, now: number): Promise<boolean> {
    if (this.#ids.has(id)) return true;
    if (Math.abs(now - this.#readAt) >= REREAD_MS) {
      await (this.#reading ??= this.#read(now).finally(() => this.#reading = undefined));
    }
    return this.#ids.has(id);
  }

  async #read(now: number): Promise<void> {
    for (const [id, until] of this.#ids) if (until <= now) this.#ids.delete(id);
    try {
      for (const { id, expiresAt } of await this.#store.endedSessions(now)) this.#ids.set(id, expiresAt);
    } catch {
      // Operators need the console most while the store is unreachable, so it keeps working. It shows the outage.
    }
    this.#readAt = now;
  }
}

/**
 * Returns the hash that signs the sessions of an author; `undefined` if the key no longer exists. Sessions of viewers
 * depend on the viewer key only, so a change of one key does not sign out holders of the other.
 */
function keyOf(author: SessionAuthor, { hash, viewerHash }: AdminConfig): string | undefined {
  return author === "viewer_key" ? viewerHash : hash;
}

function sign(text: string, key: string): string {
  return createHmac("sha256", `sluice console session ${key}`).update(text).digest("base64url");
}
