/** What an image host's refusals and failures mean, and after which of them another host may be asked. */
import { type ErrorKind, GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json/json.ts";
import { readFailure } from "../answers.ts";
import { UPSTREAM_CODECS } from "../protocols.ts";
import { type Incoming, wasNeverSent } from "../transport.ts";

/** Words for "not this image", whatever the status says. */
const REFUSALS: ReadonlySet<string> = new Set([
  "content_policy_violation",
  "moderation_blocked",
  "image_generation_user_error",
]);

/** Statuses by which a host says that it has not begun: the key, the limits, too much to do. */
const NOT_BEGUN: ReadonlySet<number> = new Set([401, 403, 429, 498, 503, 529]);

/** Errors that another target might not have. */
const FAILS_OVER: ReadonlySet<ErrorKind> = new Set(["upstream", "exhausted", "overloaded", "timeout"]);

/**
 * Makes an error final: a second try could make the same images once more, at somebody's expense. Errors that never
 * lead to another try stay what they are, and so does everything that is no error of ours.
 */
export function asFinal(error: unknown): unknown {
  if (!(error instanceof GatewayError) || error.final || !FAILS_OVER.has(error.kind)) return error;
  return error.with({ final: true });
}

/** The error of a request that got no answer: final, unless no connection could be made. */
export function sendFailure(error: unknown): unknown {
  return wasNeverSent(error) ? error : asFinal(error);
}

/** An answer other than 200, as the error it means. */
export async function statusFailure(incoming: Incoming): Promise<unknown> {
  const { status } = incoming;
  const error = await readFailure(incoming, { ...UPSTREAM_CODECS.chat, readError });
  return NOT_BEGUN.has(status) || status < 400 ? error : asFinal(error);
}

/** The error that stands in an answer or an event; `undefined` where there is none. */
export function innerFailure(body: JsonObject): unknown {
  const isError = isObject(body.error) || typeof body.error === "string" || body.type === "error";
  return isError ? asFinal(readError(200, body)) : undefined;
}

function readError(status: number, body: Json | undefined): GatewayError {
  const error = UPSTREAM_CODECS.chat.readError(isRefusal(body) ? 400 : status, body);
  const code = refusalCode(body);
  return error.kind === "invalid" && code !== undefined && error.code !== code
    ? new GatewayError("invalid", error.message, { param: error.param, cause: error.cause, code })
    : error;
}

function isRefusal(body: Json | undefined): boolean {
  return refusalCode(body) !== undefined;
}

/** The refusal's own code, the exact one before the general one. */
function refusalCode(body: Json | undefined): string | undefined {
  if (!isObject(body)) return undefined;
  const error = isObject(body.error) ? body.error : body;
  return [error.code, error.type].find((word) => typeof word === "string" && REFUSALS.has(word)) as string | undefined;
}
