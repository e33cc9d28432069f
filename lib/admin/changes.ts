/** The log of operators' changes: what is written to it, and its list over HTTP. */
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import { describeCause } from "../server/cause.ts";
import type { RouteContext } from "../server/router.ts";
import type { ChangeOrigin, ChangeRecord, LoggedChange, OperatorStore } from "../store/operators.ts";
import { readQuery } from "./request_input.ts";
import { adminResponse } from "./response.ts";
import type { ChangeLine, ChangePage } from "./schemas.ts";

/** Changes of a page: without a limit, and at most. */
const USUAL_LIMIT = 50;
const MAX_LISTED = 1_000;

/** Author, time and address of a change. Without a session the author is the holder of the admin key. */
export function originOf({ gateway, session, address, requestId }: RouteContext): ChangeOrigin {
  const from = address();
  return {
    author: session?.author ?? "admin_key",
    at: gateway.now(),
    ...(from !== undefined && { address: from }),
    requestId,
  };
}

/** Logs a change that is no transaction of the store. A failure is reported in the log of the process. */
export async function logChange({ store, log }: Pick<Gateway, "store" | "log">, change: LoggedChange): Promise<void> {
  try {
    await store.operators.logChange(change);
  } catch (error) {
    log({ level: "warn", event: "change_not_logged", action: change.action, ...describeCause(error) });
  }
}

/** `GET /admin/v1/changes`. @throws {GatewayError} `invalid` */
export async function listChanges(request: Request, { gateway }: RouteContext): Promise<Response> {
  return adminResponse(await readChanges(gateway.store, readQuery(request, ["limit", "cursor", "request"])));
}

/**
 * Reads a page of the log.
 * @param request only changes of this request; absent: all
 * @throws {GatewayError} `invalid` for a wrong limit or cursor
 */
export async function readChanges(
  { operators }: { operators: Pick<OperatorStore, "changes"> },
  { limit, cursor, request }: { limit?: string; cursor?: string; request?: string },
): Promise<ChangePage> {
  const pageSize = limit === undefined ? USUAL_LIMIT : readWhole("limit", limit, MAX_LISTED);
  const before = cursor === undefined ? {} : { before: readWhole("cursor", cursor, Number.MAX_SAFE_INTEGER) };
  const of = request === undefined ? {} : { requestId: request.replace(/^req_/, "") };
  const found = await operators.changes({ ...before, ...of, limit: pageSize + 1 });
  const page = found.slice(0, pageSize);
  const next = found.length > pageSize ? String(page.at(-1)?.seq) : null;
  return { object: "list", data: page.map(toLine), next };
}

function readWhole(param: string, text: string, max: number): number {
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
