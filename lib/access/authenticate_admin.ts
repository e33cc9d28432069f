/** Authenticates the operator by the admin key, which is no API key and gives access to the admin routes only. */
import { Buffer } from "node:buffer";
import { timingSafeEqual } from "node:crypto";
import type { AdminConfig } from "../config.ts";
import { GatewayError } from "../errors.ts";
import { readBearerKey } from "./authenticate.ts";
import { hashKey } from "./keys.ts";

/** Longer than any admin key. Keeps a huge header from being hashed. */
const LONGEST_KEY = 256;

/**
 * Checks the admin key. @throws {GatewayError} `unauthenticated` without the admin key as a bearer token; the message
 * never quotes the credential
 */
export function authenticateAdmin(headers: Pick<Headers, "get">, admin: AdminConfig): void {
  const key = readBearerKey(headers.get("authorization") ?? "");
  if (key === undefined) {
    throw refuse('Missing admin key: send it in the header "Authorization: Bearer <ADMIN_KEY>"');
  }
  const other = headers.get("x-api-key") || key;
  if (key.length > LONGEST_KEY || other !== key || !isSame(hashKey(key), admin.hash)) {
    throw refuse("The admin key is not valid");
  }
}

/** Compares in constant time. */
function isSame(hash: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(hash, "hex"), Buffer.from(wanted, "hex")];
  return a.length === b.length && timingSafeEqual(a, b);
}

function refuse(message: string): GatewayError {
  return new GatewayError("unauthenticated", message, { headers: { "www-authenticate": "Bearer" } });
}
