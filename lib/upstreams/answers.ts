/** Reads whole answers of upstreams, including errors, and the headers that clients get. */
import { type Fault, GatewayError, type VendorError } from "../errors.ts";
import {
  isObject,
  type JsonDocument,
  type JsonLimits,
  type JsonObject,
  type ObjectText,
  parseDocument,
} from "../json/mod.ts";
import type { UpstreamCodec } from "../protocols/upstream_codec.ts";
import { describePage, describeVendorError, errorInside } from "../protocols/vendor_error.ts";
import { type ContentFilter, redactSecrets } from "../redact.ts";
import type { Incoming } from "./transport.ts";
import type { HeaderFilter, ResponseHeader } from "../http1/mod.ts";

/** Largest whole answer, in bytes. */
export const ANSWER_BYTES = 64 * 1024 * 1024;
/** Largest error body, in bytes. */
const ERROR_BYTES = 64 * 1024;

/** JSON limits for answers of upstreams. */
export const ANSWER_LIMITS: JsonLimits = { depth: 256, nodes: 2_000_000, keys: 100_000 };

/** A whole answer: one JSON object. */
export interface WholeAnswer extends ObjectText {
  value: JsonObject;
}

/** Reads a whole answer through the redaction filter. @throws {GatewayError} `upstream` */
export async function readWhole(incoming: Incoming, filter?: ContentFilter): Promise<WholeAnswer> {
  const received = await incoming.text(ANSWER_BYTES);
  const text = filter === undefined ? received : filter(received);
  const parsed = await parseAnswer(text);
  if (parsed === undefined || !isObject(parsed.value)) {
    throw unreadable("a JSON object", incoming.status, text);
  }
  return { text, value: parsed.value, members: parsed.members };
}

/** Returns true if an answer is a stream of events, by its media type. */
export function isEventStream(incoming: Pick<Incoming, "header">): boolean {
  return /^text\/event-stream\b/i.test(incoming.header("content-type") ?? "");
}

/** Returns the error for an answer that is not a stream of events. Some hosts send errors as JSON with status 200. */
export async function readUnstreamed(incoming: Incoming, codec: UpstreamCodec): Promise<GatewayError> {
  const isReadable = /^(?:application\/json|text\/html)\b/i.test(incoming.header("content-type") ?? "");
  const text = isReadable ? await incoming.text(ERROR_BYTES).catch(() => "") : "";
  const body = (await parseAnswer(text))?.value;
  const first = Array.isArray(body) ? body[0] : body;
  return isObject(first) && (isObject(first.error) || typeof first.error === "string")
    ? errorInside(first, codec.readError(incoming.status, first))
    : unreadable("a stream of events", incoming.status, text);
}

/** Returns the error for an answer in an unexpected form. Details are logged only if the text is a web page. */
function unreadable(expected: string, status: number, text: string): GatewayError {
  const vendor = describePage(status, text);
  return new GatewayError("upstream", `Cannot read the upstream's answer: expected ${expected}`, { vendor });
}

/** Reads an answer with another status than 200, and returns its error. */
export async function readFailure(incoming: Incoming, codec: UpstreamCodec): Promise<GatewayError> {
  const { status } = incoming;
  if (status < 400) {
    incoming.cancel();
    return new GatewayError("upstream", "Cannot use the upstream's answer: neither a result nor an error", {
      vendor: { status },
    });
  }
  const text = await incoming.text(ERROR_BYTES).catch(() => "");
  const body = (await parseAnswer(text))?.value;
  const read = codec.readError(status, body);
  const fault = read.fault ?? faultOf(read, status);
  const requestId = requestIdOf(incoming);
  const vendor: VendorError = {
    ...describeVendorError(status, body ?? text),
    ...(requestId !== undefined && { requestId }),
  };
  if (fault === "access") {
    return new GatewayError("upstream", FORBIDDEN, {
      code: "upstream_refused",
      fault,
      vendor,
      final: true,
      cause: read.cause,
    });
  }
  // A client cannot correct a fault of the key or the account. Of other errors the upstream may say that a retry fails.
  const isFinal = fault !== "status" || incoming.header("x-should-retry") === "false";
  const error = read.with({ fault, vendor, ...(isFinal && { final: true }) });
  const retryAfterMs = error.retryAfterMs ?? readRetryAfter(incoming);
  if (retryAfterMs === undefined || (error.kind !== "exhausted" && error.kind !== "overloaded")) return error;
  return error.with({ retryAfterMs });
}

/** Returns the vendor's id of a request; `undefined` if there is none, or if it is not safe to log. */
export function requestIdOf(incoming: Pick<Incoming, "header">): string | undefined {
  const id = incoming.header("x-request-id") ?? incoming.header("request-id");
  return id !== null && /^[\x21-\x7e]{1,200}$/.test(id) ? redactSecrets(id) : undefined;
}

/**
 * Client message for an upstream's 403. The vendor's own message names accounts and projects of the operator, so it is not
 * passed on.
 */
const FORBIDDEN = "The model's vendor refused this request (403): it may name a file or an address that the vendor " +
  "cannot read, or use a model or a feature that the gateway's account may not use";

function faultOf({ kind, code }: GatewayError, status: number): Fault {
  if (status === 401) return "key";
  if (status === 402 || (kind === "exhausted" && code === "insufficient_quota")) return "credit";
  return status === 403 && kind === "upstream" ? "access" : "status";
}

/** Longest wait that clients are asked for, in milliseconds. A daily limit of a vendor may ask for more. */
const MAX_RETRY_AFTER_MS = 3_600_000;

/**
 * Reads `retry-after-ms` or `retry-after`, in milliseconds, at most an hour. HTTP dates are ignored, because they depend on two clocks.
 */
function readRetryAfter(incoming: Incoming): number | undefined {
  const ms = Number(incoming.header("retry-after-ms") ?? NaN);
  if (ms > 0) return Math.min(ms, MAX_RETRY_AFTER_MS);
  const seconds = Number(incoming.header("retry-after") ?? NaN);
  return seconds > 0 ? Math.min(seconds * 1000, MAX_RETRY_AFTER_MS) : undefined;
}

async function parseAnswer(text: string): Promise<JsonDocument | undefined> {
  try {
    return await parseDocument(text, { limits: ANSWER_LIMITS });
  } catch {
    return undefined;
  }
}

/** Header for an upstream's request id. It has another name because the gateway's answers have ids of their own. */
const UPSTREAM_REQUEST_ID = "x-sluice-upstream-request-id";

/** Headers with an upstream's request id, OpenAI's first. */
const REQUEST_ID_HEADERS = ["x-request-id", "request-id"] as const;

/** Returns a filter for header names in lower case. @param patterns names, or prefixes with `*` at the end */
export function matchHeaders(patterns: readonly string[]): HeaderFilter {
  const names = new Set(patterns.filter((pattern) => !pattern.endsWith("*")));
  const prefixes = patterns.filter((pattern) => pattern.endsWith("*")).map((pattern) => pattern.slice(0, -1));
  return (name) => names.has(name) || prefixes.some((prefix) => name.startsWith(prefix));
}

/** Returns the headers of an answer for the client, without secrets. */
export function forwardedHeaders(
  incoming: Pick<Incoming, "header" | "others">,
  forwards: HeaderFilter,
): ResponseHeader[] {
  const headers = (incoming.others ?? []).map(([name, value]): ResponseHeader => [name, redactSecrets(value)]);
  const idName = REQUEST_ID_HEADERS.find((name) => forwards(name) && incoming.header(name) !== null);
  if (idName !== undefined) headers.push([UPSTREAM_REQUEST_ID, redactSecrets(incoming.header(idName) ?? "")]);
  return headers;
}
