/** `/admin/v1/keys`: lists, creates, changes, rotates and revokes keys. Changes apply to the next request. */
import { z } from "zod";
import {
  changeKey,
  createKey,
  findKey,
  type KeyAdmin,
  keyPages,
  publicKey,
  revokeKey,
  rotateKey,
  type ShownKey,
} from "../access/key_admin.ts";
import { keysWithBudgets, type KeyWithBudget, keyWithBudget } from "../billing/reports/budget_report.ts";
import { parseDuration, parseMoment } from "../store/times.ts";
import { keyRulesSchema } from "../config.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { RouteContext } from "../server/router.ts";
import type { KeyRecord } from "../store/keys.ts";
import { originOf } from "./changes.ts";
import { adminResponse, streamedAdminResponse } from "./response.ts";
import { readBody, readOptionalBody } from "./request_input.ts";

/** A name, a duration or a time. Only its length is checked here. */
const text = z.string().max(256);

/** The body of a request to create a key. */
export const newKeySchema = z.strictObject({
  name: text.describe("Name shown in lists and logs; unique among the keys in use"),
  group: text.default("default").describe("Name of a group in the configuration"),
  rules: keyRulesSchema.optional().describe("Permissions, limits and budgets of this key that differ from its group's"),
  expires_at: text.nullish().describe("A time such as 2027-01-01T00:00:00Z, a date, or a duration such as 30d"),
});

/** The body of a request to change a key. Absent members stay unchanged. */
export const keyChangeSchema = z.strictObject({
  disabled: z.boolean().optional().describe("A disabled key is refused until it is enabled again"),
  group: text.optional().describe("Name of a group in the configuration"),
  rules: keyRulesSchema.optional().describe("Rules that replace all rules of the key"),
  expires_at: text.nullish().describe("As for a new key; null removes the expiry"),
});

/** The body of a request for a new secret. */
export const rotationSchema = z.strictObject({
  overlap: text.default("24h").describe(
    "How long the current secret stays valid, such as 24h; 0s invalidates it immediately",
  ),
});

/** Lists all keys of the store, the oldest first. Changes during the listing may or may not be included. */
export async function listKeys({ signal }: Request, { gateway }: RouteContext): Promise<Response> {
  const now = gateway.now();
  const { store: { keys, ledger }, config } = gateway;
  const data: KeyWithBudget[] = [];
  for await (const page of keyPages(keys)) {
    signal.throwIfAborted();
    data.push(...await keysWithBudgets({ ledger, config }, page, now));
  }
  return await streamedAdminResponse({ object: "list", data });
}

/** Creates a key. Its secret is only in this response. @throws {GatewayError} `invalid` for an invalid request */
export async function addKey(_request: Request, context: RouteContext): Promise<Response> {
  const { gateway } = context;
  const { name, group, rules, expires_at } = await readBody(newKeySchema, context);
  const created = await createKey(keyAdmin(context), {
    name,
    group,
    ...(rules !== undefined && { rules }),
    ...(typeof expires_at === "string" && { expiresAt: readExpiry(expires_at, gateway.now()) }),
  });
  logKeyAction(context, { action: "create_key", record: created.record });
  return adminResponse(showSecret(created, gateway), 201);
}

/** Returns the key with a name or id. @throws {GatewayError} `not_found` if there is none */
export async function showKey(_request: Request, { gateway, params: { key = "" } }: RouteContext): Promise<Response> {
  const { store, config, now } = gateway;
  return adminResponse(await keyWithBudget({ ledger: store.ledger, config }, await findKey(gateway, key), now()));
}

/**
 * Changes a key.
 * @throws {GatewayError} `not_found`; `invalid` if the change is, or the key is revoked or configured
 */
export async function editKey(_request: Request, context: RouteContext): Promise<Response> {
  const { gateway, params: { key = "" } } = context;
  const change = await readBody(keyChangeSchema, context);
  if (Object.keys(change).length === 0) {
    const known = Object.keys(keyChangeSchema.shape).join(", ");
    throw new GatewayError("invalid", `Cannot change key "${key}": the body has no changes; known members: ${known}`);
  }
  const { disabled, group, rules, expires_at } = change;
  const record = await changeKey(keyAdmin(context), key, {
    ...(disabled !== undefined && { disabled }),
    ...(group !== undefined && { group }),
    ...(rules !== undefined && { rules }),
    ...(expires_at !== undefined && {
      expiresAt: expires_at === null ? null : readExpiry(expires_at, gateway.now()),
    }),
  });
  logKeyAction(context, { action: "change_key", record, members: Object.keys(change).join(" ") });
  return adminResponse(publicKey(record, gateway.now()));
}

/**
 * Gives a key a new secret, which is only in this response.
 * @throws {GatewayError} `not_found`; `invalid` if the overlap is, or the key is revoked, expired or configured
 */
export async function rotateSecret(_request: Request, context: RouteContext): Promise<Response> {
  const { gateway, params: { key = "" } } = context;
  const { overlap } = await readOptionalBody(rotationSchema, context);
  const rotated = await rotateKey(keyAdmin(context), key, { overlapMs: readOverlap(overlap) });
  logKeyAction(context, { action: "rotate_key", record: rotated.record });
  return adminResponse(showSecret(rotated, gateway));
}

/** Revokes a key permanently. @throws {GatewayError} `not_found`; `invalid` if it is revoked already or configured */
export async function deleteKey(_request: Request, context: RouteContext): Promise<Response> {
  const { gateway, params: { key = "" } } = context;
  const record = await revokeKey(keyAdmin(context), key);
  logKeyAction(context, { action: "revoke_key", record });
  return adminResponse(publicKey(record, gateway.now()));
}

/** Returns what operations on keys need, with the operator of the request as the author. */
export function keyAdmin(context: RouteContext): KeyAdmin {
  const { config, store, now } = context.gateway;
  return { config, store, now, origin: originOf(context) };
}

function showSecret({ key, record }: ShownKey, gateway: Gateway): object {
  return { ...publicKey(record, gateway.now()), key };
}

/**
 * Reads an expiry such as `30d` or `2027-01-01`, as Unix time in milliseconds.
 * @throws {GatewayError} `invalid` if it cannot be read
 */
export function readExpiry(text: string, now: number): number {
  return readParameter("expires_at", () => parseMoment(text, now));
}

/** Reads an overlap such as `24h`, in milliseconds. @throws {GatewayError} `invalid` if it cannot be read */
export function readOverlap(text: string): number {
  return readParameter("overlap", () => parseDuration(text));
}

/** Reads a value of the request. @throws {GatewayError} `invalid` if `read` throws a `RangeError` */
function readParameter(param: string, read: () => number): number {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new GatewayError("invalid", error.message, { param, cause: error });
  }
}

/** A change of a key, for the log. */
export interface KeyAction {
  action: "create_key" | "change_key" | "rotate_key" | "revoke_key";
  record: KeyRecord;
  /** Names of the changed members, separated by spaces. */
  members?: string;
}

/** Logs a change of a key in the process log. */
export function logKeyAction({ gateway, requestId }: RouteContext, { action, record, members }: KeyAction): void {
  gateway.log({
    level: "info",
    event: "key_changed",
    request_id: requestId,
    action,
    key_id: record.id,
    ...(members !== undefined && { members }),
  });
}
