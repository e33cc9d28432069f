/** Reads errors of Google: `{error: {code, message, status, details}}`, sometimes in an array. */
import {
  KIND_BY_STATUS,
  MAX_ERROR_MESSAGE,
  REFUSED_CREDENTIALS,
  VENDOR_ERRORS,
  vendorErrorMessage,
} from "../canonical/vendor_errors.ts";
import { type ErrorKind, GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import { redactShapes } from "../../redact.ts";
import { errorInside } from "../vendor_error.ts";
import { countOf, nonEmptyStringOf, objectOf, objectsOf, present } from "../members.ts";

/** Kinds by the name of the status, which is more exact than the HTTP status. */
const KIND_BY_STATUS_NAME: ReadonlyMap<string, ErrorKind> = new Map<string, ErrorKind>([
  ["INVALID_ARGUMENT", "invalid"],
  ["OUT_OF_RANGE", "invalid"],
  // It concerns the account or its location, not the request.
  ["FAILED_PRECONDITION", "upstream"],
  ["NOT_FOUND", "not_found"],
  ["RESOURCE_EXHAUSTED", "exhausted"],
  ["UNAVAILABLE", "overloaded"],
  ["DEADLINE_EXCEEDED", "timeout"],
]);

const NOT_FOUND_MESSAGE = `${VENDOR_ERRORS.not_found}, or a file that the request names`;

/** The message about a prompt that exceeds the context window. */
const CONTEXT_MESSAGE = /input token count.*exceeds the maximum/i;

/** Reads an error response. Its message may reach the client, so addresses and keys are removed from it. */
export function readError(status: number, body: Json | undefined): GatewayError {
  return toError(objectOf(objectOf(Array.isArray(body) ? body[0] : body)?.error) ?? {}, status);
}

/** Returns the error in a piece of an answer; undefined if it has none. */
export function errorIn(piece: JsonObject): GatewayError | undefined {
  const { error } = piece;
  if (error === undefined || error === null) return undefined;
  return errorInside(piece, isObject(error) ? toError(error, countOf(error.code) ?? 500) : toError({}, 500));
}

function toError(error: JsonObject, status: number): GatewayError {
  const details = objectsOf(error.details);
  const name = nonEmptyStringOf(error.status);
  const message = nonEmptyStringOf(error.message) ?? "";
  // A refused key has the status of an invalid argument. Only the reason shows what it is.
  const isRefusedKey = details.some(({ reason }) => reason === "API_KEY_INVALID");
  const isKey = isRefusedKey || /\bAPI key\b/i.test(message);
  const isOperatorError = isKey || status === 401 || status === 403 || name === "UNAUTHENTICATED" ||
    name === "PERMISSION_DENIED";
  const cause = `upstream status ${status} ${name ?? ""}: ${message.slice(0, MAX_ERROR_MESSAGE)}`;
  if (isOperatorError) {
    return new GatewayError("upstream", REFUSED_CREDENTIALS, { cause, ...(isRefusedKey && { fault: "key" }) });
  }
  const kind = KIND_BY_STATUS_NAME.get(name ?? "") ?? KIND_BY_STATUS.get(status) ?? "upstream";
  // Google's other messages name projects and quotas, so they are only logged.
  const clientMessage = kind === "invalid" ? redactShapes(message, MAX_ERROR_MESSAGE) : "";
  const otherMessage = kind === "not_found" ? NOT_FOUND_MESSAGE : vendorErrorMessage(kind);
  return new GatewayError(kind, clientMessage || otherMessage, {
    ...(CONTEXT_MESSAGE.test(clientMessage) && { code: "context_length_exceeded" }),
    ...(kind === "not_found" && { code: "model_not_found" }),
    ...present({ retryAfterMs: readDelay(details) }),
    cause,
  });
}

/** Returns the delay of a `RetryInfo`, such as `34.07s`, in milliseconds. */
function readDelay(details: readonly JsonObject[]): number | undefined {
  for (const { retryDelay } of details) {
    const seconds = /^(\d{1,6}(?:\.\d{1,9})?)s$/.exec(nonEmptyStringOf(retryDelay) ?? "")?.[1];
    if (seconds !== undefined) return Math.ceil(Number(seconds) * 1_000);
  }
  return undefined;
}
