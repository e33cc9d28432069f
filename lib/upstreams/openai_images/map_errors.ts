/** Maps errors of image hosts, and decides which of them allow another target. */
import { type ErrorKind, GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import { readFailure } from "../answers.ts";
import { UPSTREAM_CODECS } from "../protocols.ts";
import type { Incoming } from "../transport.ts";

/** Error codes for refused content, with any status. */
const REFUSAL_CODES: ReadonlySet<string> = new Set([
  "content_policy_violation",
  "moderation_blocked",
  "image_generation_user_error",
]);

/** Statuses after which no work has begun: credentials, limits, overload. */
const STATUSES_BEFORE_WORK: ReadonlySet<number> = new Set([401, 403, 429, 498, 503, 529]);

/** Kinds of errors after which another target would be tried. */
const RETRIED_KINDS: ReadonlySet<ErrorKind> = new Set(["upstream", "exhausted", "overloaded", "timeout"]);

/**
 * Makes an error final, because another attempt could generate and bill the images again. Errors that never lead to another
 * attempt stay unchanged, and so do errors that are no `GatewayError`.
 */
export function asFinal(error: unknown): unknown {
  if (!(error instanceof GatewayError) || error.final || !RETRIED_KINDS.has(error.kind)) return error;
  return error.with({ final: true });
}

/** Returns the error of a request without an answer. It is final unless no connection could be made. */
export function sendFailure(error: unknown): unknown {
  return error instanceof GatewayError && error.fault === "unreachable" ? error : asFinal(error);
}

/** Reads an answer with another status than 200, and returns its error. */
export async function statusFailure(incoming: Incoming): Promise<unknown> {
  const { status } = incoming;
  const error = await readFailure(incoming, { ...UPSTREAM_CODECS.chat, readError });
  // A vendor that forbids a retry means its own account: another target may still be tried.
  if (STATUSES_BEFORE_WORK.has(status)) return error.fault === "status" ? error.with({ final: false }) : error;
  return status < 400 ? error : asFinal(error);
}

/** Returns the error inside an answer or event; `undefined` if there is none. */
export function innerFailure(body: JsonObject): unknown {
  const isError = isObject(body.error) || typeof body.error === "string" || body.type === "error";
  return isError ? asFinal(readError(200, body)) : undefined;
}

function readError(status: number, body: Json | undefined): GatewayError {
  const code = refusalCode(body);
  const error = UPSTREAM_CODECS.chat.readError(code === undefined ? status : 400, body);
  return error.kind === "invalid" && code !== undefined && error.code !== code
    ? new GatewayError("invalid", error.message, { param: error.param, cause: error.cause, code })
    : error;
}

/** Returns the code of a refusal; `undefined` for other errors. `code` is more specific than `type`. */
function refusalCode(body: Json | undefined): string | undefined {
  if (!isObject(body)) return undefined;
  const error = isObject(body.error) ? body.error : body;
  return [error.code, error.type].find((word) => typeof word === "string" && REFUSAL_CODES.has(word)) as
    | string
    | undefined;
}
