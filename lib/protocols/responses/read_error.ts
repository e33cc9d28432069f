/** Reads errors of upstreams: as an answer, inside a stream, inside a response. */
import { MAX_ERROR_MESSAGE, NO_CREDIT, VENDOR_ERRORS, vendorErrorMessage } from "../canonical/vendor_errors.ts";
import { type ErrorKind, GatewayError } from "../../errors.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { redactShapes } from "../../redact.ts";
import { numberOf, objectOf, stringOf } from "../members.ts";

/** Kinds by `code` or `type` of the error. */
const KINDS = new Map<string, ErrorKind>([
  ["rate_limit_exceeded", "exhausted"],
  ["rate_limit_error", "exhausted"],
  ["too_many_requests", "exhausted"],
  ["slow_down", "exhausted"],
  ["tokens", "exhausted"],
  ["requests", "exhausted"],
  ["context_length_exceeded", "invalid"],
  ["content_policy_violation", "invalid"],
  ["invalid_prompt", "invalid"],
  ["invalid_request", "invalid"],
  ["bio_policy", "invalid"],
  ["misalignment_policy_violation", "invalid"],
  ["data_residency_mismatch", "upstream"],
  ["vector_store_timeout", "upstream"],
  ["invalid_api_key", "upstream"],
  ["authentication_error", "upstream"],
  ["permission_error", "upstream"],
  ["server_is_overloaded", "overloaded"],
  ["service_unavailable_error", "overloaded"],
  ["overloaded_error", "overloaded"],
  ["overloaded", "overloaded"],
  ["timeout", "timeout"],
  ["server_error", "upstream"],
  ["model_error", "upstream"],
  ["internal_error", "upstream"],
  ["not_found", "not_found"],
  ["model_not_found", "not_found"],
  ["request_too_large", "too_large"],
  ["invalid_request_error", "invalid"],
]);

const STATUS_KINDS: Readonly<Record<number, ErrorKind>> = {
  // The refused key is the gateway's, not the client's.
  401: "upstream",
  402: "exhausted",
  403: "upstream",
  404: "not_found",
  408: "timeout",
  409: "upstream",
  413: "too_large",
  425: "upstream",
  429: "exhausted",
  503: "overloaded",
  504: "timeout",
  524: "timeout",
  529: "overloaded",
};

/** The vendor's account has no credit: a retry cannot help. */
const UNPAID = new Set(["insufficient_quota", "credit_balance_exhausted", "payment_required"]);

/** Messages for an exceeded context, from servers without an error code. */
const CONTEXT = /(?:maximum context length|context (?:window|length)|prompt is too long)/i;

/**
 * Reads an error answer. Errors of the gateway or the vendor get a fixed text; errors of the request get the vendor's
 * text without addresses and keys.
 * @param body the parsed body; absent if it was not JSON
 */
export function readError(status: number, body: Json | undefined): GatewayError {
  const error = errorMembers(body);
  return compose(error, STATUS_KINDS[status] ?? (status >= 400 && status < 500 ? "invalid" : "upstream"), status);
}

/** Reads an error in place of an answer or inside one. Only its code and type determine the kind. */
export function readInnerError(value: Json | undefined): GatewayError {
  const error = errorMembers(value);
  const status = numberOf(error.code) ?? numberOf(error.status);
  const statusKind = status === undefined || status < 400 ? undefined : STATUS_KINDS[status] ??
    (status < 500 ? "invalid" : "upstream");
  return compose(
    error,
    kindOf(stringOf(error.code)) ?? kindOf(stringOf(error.type)) ?? statusKind ?? "upstream",
    status,
  );
}

function kindOf(word: string | undefined): ErrorKind | undefined {
  if (word === undefined) return undefined;
  // Errors about images concern the request.
  return KINDS.get(word) ?? (/image/.test(word) ? "invalid" : undefined);
}

/** Returns the members of an error, which are at the top, under `error`, or both; `error` may also be a string. */
function errorMembers(value: Json | undefined): JsonObject {
  const outer = objectOf(value);
  if (outer === undefined) return {};
  const { error } = outer;
  if (typeof error === "string") return { ...outer, message: stringOf(outer.message) ?? error };
  const inner = objectOf(error);
  // The outer type is the event's.
  return inner === undefined ? outer : { ...outer, type: undefined, ...inner };
}

function compose(error: JsonObject, kind: ErrorKind, status: number | undefined): GatewayError {
  const message = stringOf(error.message)?.trim() ?? "";
  const cause = new Error(`Upstream error ${status ?? "in an answer"}: ${message || "no message"}`);
  if (status === 402 || [error.code, error.type].some((word) => UNPAID.has(stringOf(word) ?? ""))) {
    return new GatewayError("exhausted", NO_CREDIT, {
      code: "insufficient_quota",
      final: true,
      cause,
    });
  }
  if (kind !== "invalid" && kind !== "too_large") {
    return new GatewayError(kind, vendorErrorMessage(kind), {
      ...(kind === "not_found" && { code: "model_not_found" }),
      cause,
    });
  }
  const code = codeOf(error) ?? (CONTEXT.test(message) ? "context_length_exceeded" : undefined);
  const param = stringOf(error.param);
  return new GatewayError(
    kind,
    message === "" ? VENDOR_ERRORS.invalid : redactShapes(message, MAX_ERROR_MESSAGE),
    {
      ...(code !== undefined && { code }),
      ...(param !== undefined && { param: redactShapes(param, MAX_ERROR_MESSAGE) }),
      cause,
    },
  );
}

/** Returns the vendor's code if it is a single word. */
function codeOf(error: JsonObject): string | undefined {
  const code = stringOf(error.code);
  return code !== undefined && /^[a-z][\w.-]{0,63}$/i.test(code) ? code : undefined;
}
