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
import { objectOf, stringOf } from "../members.ts";

/** Kinds by Anthropic's error types. Other errors have the kind of their status. */
const KIND_BY_TYPE: ReadonlyMap<Json | undefined, ErrorKind> = new Map<Json | undefined, ErrorKind>([
  ["invalid_request_error", "invalid"],
  ["request_too_large", "too_large"],
  ["rate_limit_error", "exhausted"],
  ["overloaded_error", "overloaded"],
  ["timeout_error", "timeout"],
  ["not_found_error", "not_found"],
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
  const operatorError = operatorErrorOf(type, status);
  if (operatorError !== undefined) return new GatewayError("upstream", operatorError, { cause });
  const otherKind = status !== undefined && status >= 400 && status < 500 ? "invalid" : "upstream";
  const kind = KIND_BY_TYPE.get(type) ?? KIND_BY_STATUS.get(status ?? 0) ?? otherKind;
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

/** Returns the message for an error of the key or the account, which concerns the operator; undefined for others. */
function operatorErrorOf(type: Json | undefined, status: number | undefined): string | undefined {
  if (type === "authentication_error") return REFUSED_CREDENTIALS;
  if (type === "permission_error" || status === 403) {
    return "The model's vendor refused the gateway's access to this model";
  }
  return status === 401 ? REFUSED_CREDENTIALS : undefined;
}

/** Returns the code for a conversation that the vendor cannot continue, to which clients react; undefined if none. */
function threadCode(error: Json | undefined): string | undefined {
  const code = stringOf(objectOf(objectOf(error)?.details)?.error_code) ?? "";
  return /^thread_[a-z_]{1,64}$/.test(code) ? code : undefined;
}
