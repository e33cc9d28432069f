/** Authenticates clients: finds the caller of a request by the API key that it sends. */
import { GatewayError } from "../errors.ts";
import type { Caller } from "./permissions.ts";
import type { KeyRecord } from "../store/keys.ts";
import type { KeyRing } from "./keys.ts";
import { isWithin } from "./networks.ts";
import type { Credential } from "./access_table.ts";

/** Instructions for sending a key, for error messages. */
const INSTRUCTIONS: Readonly<Record<Credential, string>> = {
  bearer: 'send it in the header "Authorization: Bearer <API_KEY>"',
  api_key: 'send it in the header "x-api-key: <API_KEY>" or "Authorization: Bearer <API_KEY>"',
  google_key: 'send it in the header "x-goog-api-key: <API_KEY>" or "Authorization: Bearer <API_KEY>"',
};
/**
 * Keys that are looked up: visible ASCII of a key's length. Repeated headers arrive joined by ", " and do not match.
 */
const POSSIBLE_KEY = /^[\x21-\x7e]{1,256}$/;

/** Options of an authentication. */
export interface AuthenticationOptions {
  /** The credential that the route accepts. */
  credential: Credential;
  /** Returns the parameter `key` of the query, in which Google's clients may send the key; absent: none is read. */
  queryKey?: () => string | null;
  keys: KeyRing;
  /** Called with the key that the client has, whether it is accepted or not. */
  found?: (record: KeyRecord) => void;
  /** Returns the client's address; `undefined` if it is unknown. It is called only if a rule needs it. */
  address: () => string | undefined;
}

/**
 * Finds the caller by the key in the headers, and notes that the key was used.
 * @throws {GatewayError} `unauthenticated` for an unknown, revoked or expired key; `forbidden` for a disabled key, a
 * key without a group, or an address outside the key's networks; `overloaded` if the keys cannot be read
 */
export async function authenticate(headers: Pick<Headers, "get">, options: AuthenticationOptions): Promise<Caller> {
  const { keys, address, found: noteFound } = options;
  const key = readCredential(headers, options);
  const lookup = POSSIBLE_KEY.test(key) ? keys.find(key) : undefined;
  const record = lookup instanceof Promise ? await lookup : lookup;
  if (record === undefined) throw refuse("The API key is not valid", "invalid_api_key");
  noteFound?.(record);
  const caller = callerOf(record, keys);
  const { group, rules } = caller;
  if (group.ips !== undefined || rules.ips !== undefined) requireAddress([group.ips, rules.ips], address);
  keys.note(record.id);
  return caller;
}

/**
 * Returns the caller that has a key.
 * @throws {GatewayError} as `authenticate` does, except for the address, which is not checked
 */
export function callerOf(record: KeyRecord, keys: Pick<KeyRing, "group" | "now">): Caller {
  const { id, name, rules, expiresAt } = record;
  if (expiresAt !== undefined && expiresAt <= keys.now()) throw refuse("The API key has expired", "invalid_api_key");
  if (record.disabled) throw new GatewayError("forbidden", "This API key is disabled");
  const group = keys.group(record.group);
  if (group === undefined) throw new GatewayError("forbidden", "The group of this API key no longer exists");
  return { keyId: id, keyName: name, groupName: record.group, group, rules };
}

/** Requires that the client's address is in every list of networks. An unknown address is in none. */
function requireAddress(
  networkLists: readonly (readonly string[] | undefined)[],
  address: AuthenticationOptions["address"],
): void {
  const lists = networkLists.filter((list) => list !== undefined);
  const clientAddress = address();
  if (clientAddress !== undefined && lists.every((list) => isWithin(clientAddress, list))) return;
  throw new GatewayError("forbidden", "This API key may not be used from this address");
}

function readCredential(
  headers: Pick<Headers, "get">,
  { credential, queryKey }: Pick<AuthenticationOptions, "credential" | "queryKey">,
): string {
  // An empty header counts as absent.
  const apiKey = headers.get("x-api-key") || undefined;
  const authorization = headers.get("authorization") || undefined;
  // On routes with bearer keys, `x-api-key` is ignored: some clients send another service's key in it.
  if (credential !== "bearer") {
    const ownHeader = credential === "api_key" ? apiKey : headers.get("x-goog-api-key") || queryKey?.() || undefined;
    if (ownHeader !== undefined) return ownHeader;
  }
  if (authorization === undefined && credential === "bearer" && apiKey !== undefined) {
    throw refuse(`The API key cannot be sent in "x-api-key" here: ${INSTRUCTIONS[credential]}`);
  }
  if (authorization === undefined) throw refuse(`Missing API key: ${INSTRUCTIONS[credential]}`);
  const key = readBearerKey(authorization);
  if (key === undefined) throw refuse(`Cannot read the header "authorization": ${INSTRUCTIONS[credential]}`);
  return key;
}

/** Returns the key after `Bearer` and one or more spaces (RFC 9110, 11.4); `undefined` for any other scheme. */
export function readBearerKey(authorization: string): string | undefined {
  return /^bearer +(.*)$/i.exec(authorization)?.[1];
}

function refuse(message: string, code?: string): GatewayError {
  const headers = { "www-authenticate": "Bearer" };
  return new GatewayError("unauthenticated", message, { headers, ...(code !== undefined && { code }) });
}
