/** Reads errors of upstreams that speak messages, in place of an answer or inside one. */
import {
  KIND_BY_STATUS,
  MAX_ERROR_MESSAGE,
  NO_CREDIT,
  REFUSED_CREDENTIALS,
  VENDOR_ERRORS,
  vendorErrorMessage,
} from "../canonical/vendor_errors.ts";
import { type ErrorKind, GatewayError } from "../../errors.ts";
import { isObject, type Json } from "../../json/mod.ts";
import { redactShapes } from "../../redact.ts";

/** Kinds by Anthropic's error types. Other errors have the kind of their status. */
const KIND_BY_TYPE: ReadonlyMap<Json | undefined, ErrorKind> = new Map<Json | undefined, ErrorKind>([
  ["invalid_request_error", "invalid"],
  ["request_too_large", "too_large"],
  ["rate_limit_error", "exhausted"],
  ["overloaded_error", "overloaded"],
  ["timeout_error", "timeout"],
  ["not_found_error", "not_found"],
]);

/** Messages for errors of the key or the account, by type. They concern the operator, so their kind is `upstream`. */
const OPERATOR_ERRORS: ReadonlyMap<Json | undefined, string> = new Map<Json | undefined, string>([
  ["authentication_error", REFUSED_CREDENTIALS],
  ["permission_error", "The model's vendor refused the gateway's access to this model"],
]);

/** Types of errors that concern the operator, by HTTP status. */
const OPERATOR_ERROR_BY_STATUS: ReadonlyMap<number | undefined, string> = new Map<number | undefined, string>([
  [401, "authentication_error"],
  [403, "permission_error"],
]);

/**
 * Texts about the account, which Anthropic sends as errors of the request, with status 400.
 * https://github.com/anthropics/claude-code/issues/66314
 */
const NO_CREDIT_TEXT = /^(?:Your credit balance is too low|You have reached your specified (?:\w+ )?API usage limits)/;
const DISABLED_TEXT = /^This organization has been disabled/;

/** Messages about a request that exceeds the context window, by its input or together with `max_tokens`. */
const TOO_LONG = /prompt is too long|exceed(?:s|ed)? (?:the )?(?:model'?s? )?(?:maximum )?context/i;

/** Reads an error response with any body. */
export function readError(status: number, body: Json | undefined): GatewayError {
  return errorOf(isObject(body) ? body.error : undefined, status);
}

/** Reads an error object. @param status the HTTP status; absent: the error is inside an answer */
export function errorOf(error: Json | undefined, status?: number): GatewayError {
  const { type, message } = isObject(error) ? error : { type: undefined, message: error };
  const text = typeof message === "string" ? message : "";
  const cause = [status, type, text].filter((part) => typeof part === "string" || typeof part === "number").join(" ")
    .trim();
  if (status === 402 || type === "billing_error" || NO_CREDIT_TEXT.test(text)) {
    return new GatewayError("exhausted", NO_CREDIT, {
      code: "insufficient_quota",
      final: true,
      fault: "credit",
      cause,
    });
  }
  if (DISABLED_TEXT.test(text)) return new GatewayError("upstream", REFUSED_CREDENTIALS, { cause, fault: "key" });
  const operatorError = OPERATOR_ERRORS.get(type) ?? OPERATOR_ERRORS.get(OPERATOR_ERROR_BY_STATUS.get(status));
  if (operatorError !== undefined) return new GatewayError("upstream", operatorError, { cause });
  const kind = KIND_BY_TYPE.get(type) ??
    (status === undefined
      ? "upstream"
      : KIND_BY_STATUS.get(status) ?? (status >= 400 && status < 500 ? "invalid" : "upstream"));
  const thread = threadCode(error);
  if (kind !== "invalid" && thread === undefined) {
    const code = kind === "not_found" ? { code: "model_not_found" } : {};
    return new GatewayError(kind, vendorErrorMessage(kind), { ...code, cause });
  }
  const code = thread ?? (TOO_LONG.test(text) ? "context_length_exceeded" : undefined);
  return new GatewayError(kind, redactShapes(text, MAX_ERROR_MESSAGE) || VENDOR_ERRORS.invalid, {
    ...(code !== undefined && { code }),
    cause,
  });
}

/**
 * Returns the code for a conversation at the vendor that cannot continue, to which clients react; undefined if none.
 */
function threadCode(error: Json | undefined): string | undefined {
  const details = isObject(error) ? error.details : undefined;
  const code = isObject(details) ? details.error_code : undefined;
  return typeof code === "string" && /^thread_[a-z_]{1,64}$/.test(code) ? code : undefined;
}
