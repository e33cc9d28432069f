/**
 * Reads errors of upstreams that speak chat or responses, in the forms of OpenAI, OpenRouter, FastAPI and Ollama, as
 * plain text, or without a body.
 */
import { MAX_ERROR_MESSAGE, NO_CREDIT, REFUSED_CREDENTIALS, VENDOR_ERRORS } from "./canonical/vendor_errors.ts";
import { type ErrorKind, type ErrorOptions, GatewayError } from "../errors.ts";
import { isObject, type Json, parsePlain } from "../json/mod.ts";
import { redactShapes } from "../redact.ts";
import { numberOf, objectOf, objectsOf, stringOf } from "./members.ts";

interface ErrorBody {
  message: string | undefined;
  /** Error codes and types, `code` before `type`. */
  codes: string[];
  param: string | undefined;
  /** The HTTP status in the body's `code` or `status`, if it has one. */
  status: number | undefined;
  /** True if the vendor's moderation refused the request. */
  isModerated: boolean;
}

/** Error codes and types by status, for errors inside an answer whose HTTP status is not that of the error. */
const CODES_BY_STATUS: Readonly<Record<number, string>> = {
  400: "invalid_request invalid_request_error invalid_prompt context_length_exceeded content_policy_violation " +
    "bio_policy misalignment_policy_violation BadRequestError",
  401: "authentication authentication_error invalid_api_key",
  403: "permission_denied permission_error",
  404: "not_found model_not_found",
  413: "payload_too_large request_too_large",
  429: "rate_limit_exceeded rate_limit_error too_many_requests slow_down tokens requests",
  503: "overloaded overloaded_error server_is_overloaded service_unavailable_error provider_overloaded",
  504: "timeout",
};

const CODE_STATUS: ReadonlyMap<string, number> = new Map(
  Object.entries(CODES_BY_STATUS).flatMap(([status, codes]) => codes.split(" ").map((code) => [code, Number(status)])),
);

/** Codes of an account without credit, for which a retry cannot help. */
const NO_CREDIT_CODES: ReadonlySet<string> = new Set([
  "insufficient_quota",
  "credit_balance_exhausted",
  "payment_required",
  // OpenAI sends these with status 400 and 429.
  "billing_hard_limit_reached",
  "billing_not_active",
]);

/**
 * OpenAI's 429 and Groq's 413 for a request that exceeds the tokens per minute by itself: no pause helps, and smaller
 * requests of others succeed.
 */
const OVER_QUOTA_MESSAGE = /^request too large\b.*\btokens per min/is;

/** Messages about a prompt that exceeds the context window. */
const CONTEXT_MESSAGE =
  /maximum context length|context[_ ]length[_ ]exceeded|prompt is too long|context (?:window|size|length)/i;

/**
 * Reads an error. An error that the gateway or the vendor caused (key, credit, server failures) gets a fixed text; an
 * error in the request gets the vendor's text without addresses and keys.
 * @param status the HTTP status; below 400 for an error inside an answer
 */
export function readOpenaiError(status: number, body: Json | undefined): GatewayError {
  const error = readBody(body);
  const codes = new Set(error.codes);
  // Causes are logged, and a vendor that refuses a key repeats it in the message.
  const cause = {
    cause: new Error(`upstream status ${status}: ${redactShapes(error.message ?? "no message", MAX_ERROR_MESSAGE)}`),
  };
  const effectiveStatus = status >= 400 ? status : error.status ?? statusOfCodes(error.codes) ?? 502;
  if (effectiveStatus === 402 || error.codes.some((code) => NO_CREDIT_CODES.has(code))) {
    return new GatewayError("exhausted", NO_CREDIT, {
      ...cause,
      code: "insufficient_quota",
      final: true,
    });
  }
  if (effectiveStatus < 500 && isContextError(error, effectiveStatus)) {
    return invalid(error, { ...cause, code: "context_length_exceeded" });
  }
  if (effectiveStatus < 500 && (error.isModerated || codes.has("content_policy_violation"))) {
    return invalid(error, { ...cause, code: "content_policy_violation" });
  }
  if (effectiveStatus < 500 && OVER_QUOTA_MESSAGE.test(error.message ?? "")) {
    return new GatewayError("too_large", VENDOR_ERRORS.too_large, { ...cause, fault: "quota" });
  }
  const [kind, text] = kindOf(effectiveStatus);
  if (text !== undefined) {
    return new GatewayError(kind, text, { ...cause, ...(kind === "not_found" && { code: "model_not_found" }) });
  }
  return kind === "invalid"
    ? invalid(error, withCode(cause, error.codes))
    : new GatewayError(kind, clientMessage(error), cause);
}

/** Returns the kind of error by its status, with a fixed text if the vendor's own must not reach the client. */
function kindOf(status: number): [kind: ErrorKind, text?: string] {
  switch (status) {
    case 401:
    case 403:
      return ["upstream", REFUSED_CREDENTIALS];
    case 404:
      return ["not_found", VENDOR_ERRORS.not_found];
    case 408:
    case 504:
    case 524:
      return ["timeout", VENDOR_ERRORS.timeout];
    case 409:
    case 425:
      return ["upstream", VENDOR_ERRORS.upstream];
    case 413:
      return ["too_large"];
    case 429:
      return ["exhausted", VENDOR_ERRORS.exhausted];
    case 498:
    case 503:
    case 529:
      return ["overloaded", VENDOR_ERRORS.overloaded];
    default:
      return status < 500 ? ["invalid"] : ["upstream", VENDOR_ERRORS.upstream];
  }
}

function invalid(error: ErrorBody, options: ErrorOptions): GatewayError {
  return new GatewayError("invalid", clientMessage(error), {
    ...options,
    ...(error.param !== undefined && { param: redactShapes(error.param, MAX_ERROR_MESSAGE) }),
  });
}

/** Adds the vendor's code if it looks like one of OpenAI's. */
function withCode(options: ErrorOptions, codes: readonly string[]): ErrorOptions {
  const code = codes.find((code) =>
    /^[a-z][a-z_]{2,63}$/.test(code) && !/^(?:invalid_request(?:_error)?|error)$/.test(code)
  );
  return code === undefined ? options : { ...options, code };
}

function isContextError({ message, codes }: ErrorBody, status: number): boolean {
  if (codes.includes("context_length_exceeded")) return true;
  return (status === 400 || status === 413 || status === 422) && message !== undefined && CONTEXT_MESSAGE.test(message);
}

function statusOfCodes(codes: readonly string[]): number | undefined {
  // Errors about images concern the request.
  return codes.map((code) => CODE_STATUS.get(code) ?? (code.includes("image") ? 400 : undefined))
    .find((status) => status !== undefined);
}

function readBody(body: Json | undefined): ErrorBody {
  const empty: ErrorBody = { message: undefined, codes: [], param: undefined, status: undefined, isModerated: false };
  if (typeof body === "string") return { ...empty, message: plainText(body) };
  // Google wraps stream errors into a list.
  const object = Array.isArray(body) ? body.find(isObject) : body;
  if (!isObject(object)) return empty;
  const error = objectOf(object.error) ?? object;
  const metadata = objectOf(error.metadata) ?? {};
  const inner = readRaw(metadata.raw);
  const code = numberOf(error.code) ?? numberOf(error.status);
  const codes = [error.code, error.type, error.status, metadata.error_type].filter((code) => typeof code === "string");
  return {
    message: inner?.message ?? messageOf(error.message) ?? messageOf(object.error) ?? messageOf(object.detail),
    codes: [...codes, ...(inner?.codes ?? [])],
    param: stringOf(error.param) || undefined,
    status: code !== undefined && code >= 400 && code < 600 ? code : inner?.status,
    isModerated: Array.isArray(metadata.reasons),
  };
}

/** Reads the vendor's answer, which OpenRouter includes as text. Its own message only refers to that text. */
function readRaw(raw: Json | undefined): ErrorBody | undefined {
  if (typeof raw !== "string" || raw === "") return undefined;
  try {
    const body = parsePlain(raw);
    const error = isObject(body) && !isObject(objectOf(body.error)?.metadata) ? readBody(body) : undefined;
    return error?.message === undefined ? undefined : error;
  } catch {
    return readBody(raw);
  }
}

/** Returns a message, or FastAPI's list of errors as one text. Mistral puts that list into its message. */
function messageOf(value: Json | undefined): string | undefined {
  if (typeof value === "string") return plainText(value);
  const list = Array.isArray(value) ? value : objectOf(value)?.detail;
  const messages = objectsOf(list).slice(0, 5).flatMap((issue) => {
    const text = stringOf(issue.msg) ?? stringOf(issue.message);
    const location = Array.isArray(issue.loc) ? issue.loc.filter((part) => part !== "body").map(String).join(".") : "";
    return text === undefined ? [] : [location === "" ? text : `${location}: ${text}`];
  });
  if (messages.length > 0) return messages.join("; ");
  const inner = objectOf(value);
  return plainText(stringOf(inner?.detail) ?? stringOf(inner?.message) ?? "");
}

/** Returns a trimmed message; undefined if it is empty or a page of HTML. */
function plainText(text: string): string | undefined {
  const trimmed = text.trim();
  return trimmed === "" || trimmed.startsWith("<") ? undefined : trimmed;
}

/** Returns the vendor's message without addresses and keys, or a fixed one. */
function clientMessage({ message }: ErrorBody): string {
  return message === undefined ? VENDOR_ERRORS.invalid : redactShapes(message, MAX_ERROR_MESSAGE);
}
