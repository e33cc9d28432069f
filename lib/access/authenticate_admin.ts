/** Authenticates operators by the admin keys, which are not API keys and are accepted only on the admin side. */
import type { AdminConfig } from "../config.ts";
import { GatewayError } from "../errors.ts";
import { readBearerKey } from "./authenticate.ts";
import { isEqual, type OperatorRole } from "./console_session.ts";
import { hashKey } from "./keys.ts";

/** Longest admin key, in characters. A longer header is refused without hashing it. */
const MAX_KEY_CHARACTERS = 256;

/**
 * Returns the role of the admin key that is sent as a bearer token.
 * @throws {GatewayError} `unauthenticated` without a valid key; the message never quotes the credential
 */
export function authenticateAdmin(headers: Pick<Headers, "get">, admin: AdminConfig): OperatorRole {
  const key = readBearerKey(headers.get("authorization") ?? "");
  if (key === undefined) {
    throw refuse('Missing admin key: send it in the header "Authorization: Bearer <ADMIN_KEY>"');
  }
  // Two different keys in one request are a mistake of the client.
  const apiKey = headers.get("x-api-key") || key;
  const role = apiKey === key ? roleOf(key, admin) : undefined;
  if (role === undefined) throw refuse("The admin key is not valid");
  return role;
}

/** Returns the role of an admin key; `undefined` if it is wrong. The hashes are compared in constant time. */
export function roleOf(key: string, { hash: adminHash, viewerHash = "" }: AdminConfig): OperatorRole | undefined {
  if (key.length > MAX_KEY_CHARACTERS) return undefined;
  const hash = hashKey(key);
  const [isAdmin, isViewer] = [isEqual(hash, adminHash), isEqual(hash, viewerHash)];
  if (isAdmin) return "admin";
  return isViewer ? "viewer" : undefined;
}

function refuse(message: string): GatewayError {
  return new GatewayError("unauthenticated", message, { headers: { "www-authenticate": "Bearer" } });
}
