/** Finds the caller of a request by its credential headers. */
import { GatewayError } from "../errors.ts";
import type { Caller } from "./permissions.ts";
import type { KeyRecord } from "../store/keys.ts";
import type { KeyRing } from "./keys.ts";
import { isWithin } from "./networks.ts";
import type { Credential } from "./access_table.ts";

const INSTRUCTIONS: Readonly<Record<Credential, string>> = {
  bearer: 'send it in the header "Authorization: Bearer <API_KEY>"',
  api_key: 'send it in the header "x-api-key: <API_KEY>" or "Authorization: Bearer <API_KEY>"',
  google_key: 'send it in the header "x-goog-api-key: <API_KEY>" or "Authorization: Bearer <API_KEY>"',
};
/** Visible ASCII without spaces, no longer than any key. Repeated headers arrive joined by ", " and do not match. */
const PLAUSIBLE = /^[\x21-\x7e]{1,256}$/;

/** Options of an authentication. */
export interface AuthenticationOptions {
  /** The headers to read. */
  credential: Credential;
  /** Returns the member `key` of the query, which Google's clients may send the key in; absent: there is none. */
  queryKey?: () => string | null;
  keys: KeyRing;
  /** Called with the key that the client has, whether it is accepted or not. */
  found?: (record: KeyRecord) => void;
  /** Returns the client's address, `undefined` if it is unknown. Called only if a rule needs it. */
  address: () => string | undefined;
}

/**
 * Finds the caller by the credential in the headers.
 * @throws {GatewayError} `unauthenticated` for an unknown, revoked or expired key; `forbidden` for a disabled key, a
 * key without a group, or an address outside the key's networks; `overloaded` if the keys cannot be read
 */
export async function authenticate(headers: Pick<Headers, "get">, options: AuthenticationOptions): Promise<Caller> {
  const { keys, address, found: noteFound } = options;
  const key = readCredential(headers, options);
  const found = PLAUSIBLE.test(key) ? keys.find(key) : undefined;
  const record = found instanceof Promise ? await found : found;
  if (record === undefined) throw refuse("The API key is not valid", "invalid_api_key");
  noteFound?.(record);
  const caller = callerOf(record, keys);
  const { group, rules } = caller;
  if (group.ips !== undefined || rules.ips !== undefined) requireAddress([group.ips, rules.ips], address);
  keys.note(record.id);
  return caller;
}

/** The caller with this key. @throws {GatewayError} as `authenticate`, but for the address */
export function callerOf(record: KeyRecord, keys: Pick<KeyRing, "group" | "now">): Caller {
  const { id, name, rules, expiresAt } = record;
  if (expiresAt !== undefined && expiresAt <= keys.now()) throw refuse("The API key has expired", "invalid_api_key");
  if (record.disabled) throw new GatewayError("forbidden", "This API key is disabled");
  const group = keys.group(record.group);
  if (group === undefined) throw new GatewayError("forbidden", "The group of this API key no longer exists");
  return { keyId: id, keyName: name, groupName: record.group, group, rules };
}

/** Checks the client's address. An unknown address is in no network. */
function requireAddress(
  rules: readonly (readonly string[] | undefined)[],
  address: AuthenticationOptions["address"],
): void {
  const lists = rules.filter((list) => list !== undefined);
  const from = address();
  if (from !== undefined && lists.every((list) => isWithin(from, list))) return;
  throw new GatewayError("forbidden", "This API key may not be used from this address");
}

function readCredential(
  headers: Pick<Headers, "get">,
  { credential, queryKey }: Pick<AuthenticationOptions, "credential" | "queryKey">,
): string {
  // An empty header carries no credential.
  const apiKey = headers.get("x-api-key") || undefined;
  const authorization = headers.get("authorization") || undefined;
  // Some clients send another service's key in "x-api-key" in addition to the bearer key.
  if (credential !== "bearer") {
    const named = credential === "api_key" ? apiKey : headers.get("x-goog-api-key") || queryKey?.() || undefined;
    if (named !== undefined) return named;
  }
  if (authorization === undefined && credential === "bearer" && apiKey !== undefined) {
    throw refuse(`The API key cannot be sent in "x-api-key" here: ${INSTRUCTIONS[credential]}`);
  }
  if (authorization === undefined) throw refuse(`Missing API key: ${INSTRUCTIONS[credential]}`);
  const key = readBearerKey(authorization);
  if (key === undefined) throw refuse(`Cannot read the header "authorization": ${INSTRUCTIONS[credential]}`);
  return key;
}

/** Reads the key after `Bearer` and one or more spaces (RFC 9110, 11.4); `undefined` for any other scheme. */
export function readBearerKey(authorization: string): string | undefined {
  return /^bearer +(.*)$/i.exec(authorization)?.[1];
}

function refuse(message: string, code?: string): GatewayError {
  const headers = { "www-authenticate": "Bearer" };
  return new GatewayError("unauthenticated", message, { headers, ...(code !== undefined && { code }) });
}
