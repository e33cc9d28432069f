/** Reads errors of upstreams: in place of an answer, and inside one. */
import {
  MAX_ERROR_MESSAGE,
  NO_CREDIT,
  REFUSED_CREDENTIALS,
  VENDOR_ERRORS,
  vendorErrorMessage,
} from "../canonical/vendor_errors.ts";
import { type ErrorKind, GatewayError } from "../../errors.ts";
import { isObject, type Json } from "../../json/mod.ts";
import { redactShapes } from "../../redact.ts";

/** Kinds by Anthropic's own error types. All others have the kind of their status. */
const BY_TYPE: ReadonlyMap<Json | undefined, ErrorKind> = new Map<Json | undefined, ErrorKind>([
  ["invalid_request_error", "invalid"],
  ["request_too_large", "too_large"],
  ["rate_limit_error", "exhausted"],
  ["overloaded_error", "overloaded"],
  ["timeout_error", "timeout"],
  ["not_found_error", "not_found"],
]);

/** Kinds by status. Errors of the key or the account concern the operator: `upstream`. */
const BY_STATUS: ReadonlyMap<number, ErrorKind> = new Map<number, ErrorKind>([
  [400, "invalid"],
  [404, "not_found"],
  [408, "timeout"],
  [413, "too_large"],
  [422, "invalid"],
  [429, "exhausted"],
  [503, "overloaded"],
  [504, "timeout"],
  [529, "overloaded"],
]);

/** Errors that concern the operator, whatever their status is. */
const OPERATORS: ReadonlyMap<Json | undefined, string> = new Map<Json | undefined, string>([
  ["authentication_error", REFUSED_CREDENTIALS],
  ["permission_error", "The model's vendor refused the gateway's access to this model"],
  ["billing_error", NO_CREDIT],
]);

const BY_OPERATOR_STATUS: ReadonlyMap<number | undefined, string> = new Map<number | undefined, string>([
  [401, "authentication_error"],
  [402, "billing_error"],
  [403, "permission_error"],
]);

/** Messages for an exceeded context, by the input alone or with `max_tokens`. */
const TOO_LONG = /prompt is too long|exceed(?:s|ed)? (?:the )?(?:model'?s? )?(?:maximum )?context/i;

/** Reads an error answer with any body. */
export function readError(status: number, body: Json | undefined): GatewayError {
  return errorOf(isObject(body) ? body.error : undefined, status);
}

/**
 * Reads an error object.
 * @param status HTTP status; absent: the error came inside an answer
 */
export function errorOf(error: Json | undefined, status?: number): GatewayError {
  const { type, message } = isObject(error) ? error : { type: undefined, message: error };
  const text = typeof message === "string" ? message : "";
  const cause = [status, type, text].filter((part) => typeof part === "string" || typeof part === "number").join(" ")
    .trim();
  const operators = OPERATORS.get(type) ?? OPERATORS.get(BY_OPERATOR_STATUS.get(status));
  if (operators !== undefined) return new GatewayError("upstream", operators, { cause });
  const kind = BY_TYPE.get(type) ?? (status === undefined ? "upstream" : BY_STATUS.get(status) ?? otherKind(status));
  const thread = threadCode(error);
  if (thread !== undefined) {
    return new GatewayError(kind, redactShapes(text, MAX_ERROR_MESSAGE) || VENDOR_ERRORS.invalid, {
      code: thread,
      cause,
    });
  }
  if (kind === "not_found") return new GatewayError(kind, VENDOR_ERRORS.not_found, { code: "model_not_found", cause });
  if (kind !== "invalid") return new GatewayError(kind, vendorErrorMessage(kind), { cause });
  const code = TOO_LONG.test(text) ? { code: "context_length_exceeded" } : {};
  return new GatewayError(kind, redactShapes(text, MAX_ERROR_MESSAGE) || VENDOR_ERRORS.invalid, { ...code, cause });
}

/** Returns the code of a vendor-side conversation that cannot continue: clients react to it. */
function threadCode(error: Json | undefined): string | undefined {
  const details = isObject(error) ? error.details : undefined;
  const code = isObject(details) ? details.error_code : undefined;
  return typeof code === "string" && /^thread_[a-z_]{1,64}$/.test(code) ? code : undefined;
}

function otherKind(status: number): ErrorKind {
  return status >= 400 && status < 500 ? "invalid" : "upstream";
}
