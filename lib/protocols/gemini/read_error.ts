/** Reads errors: `{error: {code, message, status, details}}`, sometimes in an array. */
import { type ErrorKind, GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import { redactShapes } from "../../redact.ts";
import { countOf, objectsOf } from "../members.ts";
import { nonEmptyStringOf, objectOf } from "./members.ts";

/** Kinds by the name of the status, which is more exact than its number. */
const KINDS: ReadonlyMap<string, ErrorKind> = new Map<string, ErrorKind>([
  ["INVALID_ARGUMENT", "invalid"],
  ["OUT_OF_RANGE", "invalid"],
  // Concerns the account or its location, not the request.
  ["FAILED_PRECONDITION", "upstream"],
  // The key is the gateway's, so the client cannot correct it.
  ["UNAUTHENTICATED", "upstream"],
  ["PERMISSION_DENIED", "upstream"],
  ["NOT_FOUND", "not_found"],
  ["RESOURCE_EXHAUSTED", "exhausted"],
  ["INTERNAL", "upstream"],
  ["UNKNOWN", "upstream"],
  ["DATA_LOSS", "upstream"],
  ["ABORTED", "upstream"],
  ["CANCELLED", "upstream"],
  ["UNIMPLEMENTED", "upstream"],
  ["UNAVAILABLE", "overloaded"],
  ["DEADLINE_EXCEEDED", "timeout"],
]);

/**
 * Fixed texts for clients. Google's own messages name projects and quotas, so they are only logged, unless they concern
 * the request.
 */
const MESSAGES: Readonly<Partial<Record<ErrorKind, string>>> = {
  not_found: "The upstream does not know this model, or a file that the request names",
  exhausted: "The limit of requests at the upstream is reached",
  overloaded: "The upstream is overloaded",
  timeout: "The upstream took too long to answer",
  too_large: "The request is larger than the upstream accepts",
  invalid: "The upstream refused the request",
};

const FAILED = "The upstream failed to answer";
const NO_ACCESS = "The upstream does not let the gateway in";

const CONTEXT = /input token count.*exceeds the maximum/i;

/** Most UTF-16 code units of a message that is passed on. */
const MESSAGE_LENGTH = 1_000;

/** Reads an error answer. Addresses and keys are removed from its message, which may reach the client. */
export function readError(status: number, body: Json | undefined): GatewayError {
  return toError(objectOf(objectOf(Array.isArray(body) ? body[0] : body).error), status);
}

/** Returns the error in a piece of an answer, if it has one. */
export function errorIn({ error }: JsonObject): GatewayError | undefined {
  if (error === undefined || error === null) return undefined;
  return isObject(error) ? toError(error, countOf(error.code) ?? 500) : toError({}, 500);
}

function toError(error: JsonObject, status: number): GatewayError {
  const details = objectsOf(error.details);
  const name = nonEmptyStringOf(error.status);
  const message = nonEmptyStringOf(error.message) ?? "";
  // A refused key has the status of an invalid argument; only the reason shows it.
  const isRefusedKey = details.some(({ reason }) => reason === "API_KEY_INVALID");
  const isKey = isRefusedKey || /\bAPI key\b/i.test(message);
  const isOurs = isKey || status === 401 || status === 403 || name === "UNAUTHENTICATED" ||
    name === "PERMISSION_DENIED";
  const cause = `upstream status ${status} ${name ?? ""}: ${message.slice(0, MESSAGE_LENGTH)}`;
  if (isOurs) return new GatewayError("upstream", NO_ACCESS, { cause, ...(isRefusedKey && { fault: "key" }) });
  const kind = KINDS.get(name ?? "") ?? kindOf(status);
  const said = kind === "invalid" ? redactShapes(message, MESSAGE_LENGTH) : "";
  const retryAfterMs = readDelay(details);
  return new GatewayError(kind, said || (MESSAGES[kind] ?? FAILED), {
    ...(kind === "invalid" && CONTEXT.test(said) && { code: "context_length_exceeded" }),
    ...(kind === "not_found" && { code: "model_not_found" }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    cause,
  });
}

function kindOf(status: number): ErrorKind {
  if (status === 404) return "not_found";
  if (status === 408 || status === 504) return "timeout";
  if (status === 413) return "too_large";
  if (status === 429) return "exhausted";
  if (status === 503) return "overloaded";
  return status === 400 || status === 422 ? "invalid" : "upstream";
}

/** Returns the delay of a `RetryInfo`, such as `34.07s`, in milliseconds. */
function readDelay(details: readonly JsonObject[]): number | undefined {
  for (const { retryDelay } of details) {
    const seconds = /^(\d{1,6}(?:\.\d{1,9})?)s$/.exec(nonEmptyStringOf(retryDelay) ?? "")?.[1];
    if (seconds !== undefined) return Math.ceil(Number(seconds) * 1_000);
  }
  return undefined;
}
