/** The log of operators' changes: writes to it, and lists it for `GET /admin/v1/changes`. */
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import { describeCause } from "../causes.ts";
import { addressOf } from "../server/client_tracker.ts";
import type { RouteContext } from "../server/router.ts";
import type { ChangeOrigin, ChangeRecord, LoggedChange, OperatorStore } from "../store/operators.ts";
import { readQuery } from "./request_input.ts";
import { adminResponse } from "./response.ts";
import type { ChangeLine, ChangePage } from "./schemas.ts";

/** Changes of a page if the request sets no limit. */
const DEFAULT_LIMIT = 50;
/** Largest limit of a page. */
const MAX_LIMIT = 1_000;

/**
 * Returns the author, time and address of a change. Without a session of the console, the author used the admin key.
 */
export function originOf(context: RouteContext): ChangeOrigin {
  const { gateway, session, requestId } = context;
  const address = addressOf(context);
  return {
    author: session?.author ?? "admin_key",
    at: gateway.now(),
    ...(address !== undefined && { address }),
    requestId,
  };
}

/**
 * Logs a change that is not made by a transaction of the store, which would log it. A failure goes to the process log.
 */
export async function logChange({ store, log }: Pick<Gateway, "store" | "log">, change: LoggedChange): Promise<void> {
  try {
    await store.operators.logChange(change);
  } catch (error) {
    log({ level: "warn", event: "change_not_logged", action: change.action, ...describeCause(error) });
  }
}

/** `GET /admin/v1/changes`: lists changes. @throws {GatewayError} `invalid` for parameters that cannot be read */
export async function listChanges(request: Request, { gateway }: RouteContext): Promise<Response> {
  return adminResponse(await readChanges(gateway.store, readQuery(request, ["limit", "cursor", "request"])));
}

/**
 * Reads a page of the log, the latest change first.
 * @param query `request`: id of a request, to get only its changes; absent: all
 * @throws {GatewayError} `invalid` for a wrong limit or cursor
 */
export async function readChanges(
  { operators }: { operators: Pick<OperatorStore, "changes"> },
  { limit, cursor, request }: { limit?: string; cursor?: string; request?: string },
): Promise<ChangePage> {
  const size = limit === undefined ? DEFAULT_LIMIT : readInteger("limit", limit, MAX_LIMIT);
  const before = cursor === undefined ? {} : { before: readInteger("cursor", cursor, Number.MAX_SAFE_INTEGER) };
  const ofRequest = request === undefined ? {} : { requestId: request.replace(/^req_/, "") };
  const changes = await operators.changes({ ...before, ...ofRequest, limit: size + 1 });
  const page = changes.slice(0, size);
  const next = changes.length > size ? String(page.at(-1)?.seq) : null;
  return { object: "list", data: page.map(toLine), next };
}

function readInteger(param: string, text: string, max: number): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : 0;
  if (value >= 1 && value <= max) return value;
  const expected = param === "cursor" ? 'the "next" of the page before' : `a whole number from 1 to ${max}`;
  throw new GatewayError("invalid", `Invalid ${param}: expected ${expected}`, { param });
}

function toLine({ at, author, address, action, subject, before, after, requestId }: ChangeRecord): ChangeLine {
  return {
    at: new Date(at).toISOString(),
    author,
    address: address ?? null,
    action,
    subject: subject ?? null,
    before: before ?? null,
    after: after ?? null,
    request_id: requestId === undefined ? null : `req_${requestId}`,
  };
}
