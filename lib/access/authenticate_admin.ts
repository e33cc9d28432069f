/** Authenticates operators by the admin keys, which are not API keys and open only the admin routes. */
import type { AdminConfig } from "../config.ts";
import { GatewayError } from "../errors.ts";
import { readBearerKey } from "./authenticate.ts";
import { isEqual, type OperatorRole } from "./console_session.ts";
import { hashKey } from "./keys.ts";

/** Longer than any admin key. Keeps a huge header from being hashed. */
const LONGEST_KEY = 256;

/**
 * Checks the admin key in the headers.
 * @throws {GatewayError} `unauthenticated` without an admin key as a bearer token; the message never quotes the credential
 */
export function authenticateAdmin(headers: Pick<Headers, "get">, admin: AdminConfig): OperatorRole {
  const key = readBearerKey(headers.get("authorization") ?? "");
  if (key === undefined) {
    throw refuse('Missing admin key: send it in the header "Authorization: Bearer <ADMIN_KEY>"');
  }
  const other = headers.get("x-api-key") || key;
  const role = other === key ? roleOf(key, admin) : undefined;
  if (role === undefined) throw refuse("The admin key is not valid");
  return role;
}

/** Returns the role of a key; undefined for a wrong key. Compares in constant time. */
export function roleOf(key: string, { hash: adminHash, viewerHash = "" }: AdminConfig): OperatorRole | undefined {
  if (key.length > LONGEST_KEY) return undefined;
  const hash = hashKey(key);
  const [isAdmin, isViewer] = [isEqual(hash, adminHash), isEqual(hash, viewerHash)];
  return isAdmin ? "admin" : isViewer ? "viewer" : undefined;
}

function refuse(message: string): GatewayError {
  return new GatewayError("unauthenticated", message, { headers: { "www-authenticate": "Bearer" } });
}
