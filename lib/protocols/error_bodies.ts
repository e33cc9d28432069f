/** Writes error bodies in the shapes of OpenAI (chat, responses, images, catalog), Anthropic (messages) and Google. */
import type { ErrorKind, GatewayError } from "../errors.ts";
import type { JsonObject } from "../json/mod.ts";
import type { ErrorReply } from "./codec.ts";

/**
 * `type` and default `code` of an OpenAI error body, `type` of an Anthropic one, and `status` of a Google one, by kind.
 * https://cloud.google.com/apis/design/errors#error_codes
 */
const NAMES: Readonly<
  Record<ErrorKind, readonly [openai: string, code: string | null, anthropic: string, google: string]>
> = {
  invalid: ["invalid_request_error", null, "invalid_request_error", "INVALID_ARGUMENT"],
  unauthenticated: ["invalid_request_error", "invalid_api_key", "authentication_error", "UNAUTHENTICATED"],
  forbidden: ["invalid_request_error", "access_denied", "permission_error", "PERMISSION_DENIED"],
  not_found: ["invalid_request_error", "not_found", "not_found_error", "NOT_FOUND"],
  method_not_allowed: ["invalid_request_error", "method_not_allowed", "invalid_request_error", "UNIMPLEMENTED"],
  too_slow: ["invalid_request_error", "request_timeout", "timeout_error", "DEADLINE_EXCEEDED"],
  too_large: ["invalid_request_error", "request_too_large", "request_too_large", "INVALID_ARGUMENT"],
  unsupported_media_type: [
    "invalid_request_error",
    "unsupported_media_type",
    "invalid_request_error",
    "INVALID_ARGUMENT",
  ],
  upgrade_required: ["invalid_request_error", "upgrade_required", "invalid_request_error", "FAILED_PRECONDITION"],
  limited: ["rate_limit_error", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"],
  exhausted: ["rate_limit_error", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"],
  internal: ["server_error", "internal_error", "api_error", "INTERNAL"],
  upstream: ["server_error", "upstream_error", "api_error", "INTERNAL"],
  overloaded: ["server_error", "overloaded", "overloaded_error", "UNAVAILABLE"],
  timeout: ["server_error", "timeout", "timeout_error", "DEADLINE_EXCEEDED"],
};

/** `type` and `code` of an OpenAI error body, for codes of the gateway that OpenAI has under other names. */
const OPENAI_BY_CODE: ReadonlyMap<string, readonly [type: string, code: string]> = new Map([
  ["insufficient_quota", ["insufficient_quota", "insufficient_quota"]],
  ["rate_limit_requests", ["requests", "rate_limit_exceeded"]],
  ["rate_limit_tokens", ["tokens", "rate_limit_exceeded"]],
  ["concurrency_limit", ["requests", "rate_limit_exceeded"]],
]);

const GOOGLE_TYPE_PREFIX = "type.googleapis.com/google.rpc.";

/** Returns an OpenAI error, for a response or inside a stream. The SDKs' types require all four members. */
export function openaiError(
  error: GatewayError,
): { message: string; type: string; param: string | null; code: string | null } {
  const [type, code] = NAMES[error.kind];
  const [knownType, knownCode] = OPENAI_BY_CODE.get(error.code ?? "") ?? [];
  return {
    message: error.message,
    type: knownType ?? type,
    param: error.param ?? null,
    code: knownCode ?? error.code ?? code,
  };
}

/** Anthropic's texts for a prompt that is too long. Agents recognize them and shorten their conversation. */
const TOO_LONG = /prompt is too long|input length and `max_tokens` exceed context limit/i;

/** Returns an Anthropic error, for a response or inside a stream. Its text begins with the invalid member, if any. */
export function anthropicError(
  error: GatewayError,
): { type: string; message: string; details?: { error_code: string } } {
  const isTooLong = error.code === "context_length_exceeded";
  const text = isTooLong && !TOO_LONG.test(error.message) ? `prompt is too long: ${error.message}` : error.message;
  const message = isTooLong || error.param === undefined ? text : beginWithName(text, error.param);
  // For errors about conversations that the vendor stores. Clients act upon the code.
  const details = error.code?.startsWith("thread_") === true ? { details: { error_code: error.code } } : {};
  return { type: NAMES[error.kind][2], message, ...details };
}

/** Returns a text that begins with the name of the invalid member, as Anthropic's do. */
function beginWithName(text: string, name: string): string {
  if (text.startsWith(name)) return text;
  const end = `: ${name}`;
  for (const start of [`Invalid value for ${name}: `, `Cannot read ${name}: `]) {
    if (text.startsWith(start)) return `${name}: ${text.slice(start.length)}`;
  }
  return `${name}: ${text.endsWith(end) ? text.slice(0, -end.length) : text.replace(`${end}. `, ". ")}`;
}

/** Returns an error response in OpenAI's shape. */
export function openaiErrorReply(error: GatewayError, requestId: string): ErrorReply {
  return { status: error.status, headers: errorHeaders(error, requestId), body: { error: openaiError(error) } };
}

/** Returns the status that a client of an endpoint gets. Anthropic's clients expect 529 for the kind `overloaded`. */
export function statusFor(error: GatewayError, endpoint: string): number {
  return endpoint === "messages" && error.kind === "overloaded" ? 529 : error.status;
}

/** Returns an error response in Anthropic's shape. */
export function anthropicErrorReply(error: GatewayError, requestId: string): ErrorReply {
  const id = `req_${requestId}`;
  const headers = errorHeaders(error, requestId);
  // Claude Code (2.1.330) gives up if it has to wait for more than 60 s. A limit per minute may need 60.5 s, which is
  // rounded up to 61.
  if (headers["retry-after"] === "61") headers["retry-after"] = "60";
  return {
    status: statusFor(error, "messages"),
    headers: { ...headers, "request-id": id },
    body: { type: "error", error: anthropicError(error), request_id: id },
  };
}

/** Returns a Google error, for a response or inside a stream. */
export function googleError(
  error: GatewayError,
): { code: number; message: string; status: string; details?: JsonObject[] } {
  const details = googleDetails(error);
  const { status: code, message, kind } = error;
  return { code, message, status: NAMES[kind][3], ...(details.length > 0 && { details }) };
}

/**
 * The reason that makes Gemini CLI give up. Without it the CLI retries 429 and 503 up to ten times. A daily quota makes
 * it give up, too, but then it shows "You have exhausted your daily quota" in place of the message. Source:
 * `classifyGoogleError` of npm `@google/gemini-cli` 0.61.0.
 */
const GIVE_UP_REASON = "INSUFFICIENT_G1_CREDITS_BALANCE";

/** Returns the details that Google's clients read: the code, the invalid member, and whether and when to retry. */
function googleDetails({ code, param, retryAfterMs, final, status }: GatewayError): JsonObject[] {
  const details: JsonObject[] = [];
  const add = (type: string, members: JsonObject) => details.push({ "@type": GOOGLE_TYPE_PREFIX + type, ...members });
  if (final && (status === 429 || status === 503)) {
    const metadata = code === undefined ? {} : { metadata: { code } };
    add("ErrorInfo", { reason: GIVE_UP_REASON, domain: "sluice", ...metadata });
  } else if (code !== undefined) add("ErrorInfo", { reason: code.toUpperCase(), domain: "sluice" });
  if (param !== undefined) add("BadRequest", { fieldViolations: [{ field: param }] });
  if (retryAfterMs !== undefined) add("RetryInfo", { retryDelay: `${Math.max(0.001, retryAfterMs / 1000)}s` });
  return details;
}

/** Returns an error response in Google's shape. */
export function googleErrorReply(error: GatewayError, requestId: string): ErrorReply {
  return { status: error.status, headers: errorHeaders(error, requestId), body: { error: googleError(error) } };
}

/** Returns the id of the request, and the headers that tell SDKs whether and when to retry. */
function errorHeaders(error: GatewayError, requestId: string): Record<string, string> {
  const headers: Record<string, string> = { ...error.headers };
  if (error.retryAfterMs !== undefined) {
    headers["retry-after"] = String(Math.max(1, Math.ceil(error.retryAfterMs / 1000)));
    headers["retry-after-ms"] = String(Math.max(1, Math.ceil(error.retryAfterMs)));
  }
  if (error.final) headers["x-should-retry"] = "false";
  headers["x-request-id"] = `req_${requestId}`;
  return headers;
}
