/** Reads errors: `{error: {code, message, status, details}}`, at times in an array. */
import { type ErrorKind, GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json.ts";
import { countOf, objectOf, objectsOf, wordsOf } from "./members.ts";

/** Kinds by the name of the status, which is more exact than its number. */
const KINDS: Readonly<Record<string, ErrorKind>> = {
  INVALID_ARGUMENT: "invalid",
  OUT_OF_RANGE: "invalid",
  // Of the account or the place it is used from, not of the request.
  FAILED_PRECONDITION: "upstream",
  // The key is ours: the client can do nothing about it.
  UNAUTHENTICATED: "upstream",
  PERMISSION_DENIED: "upstream",
  NOT_FOUND: "not_found",
  RESOURCE_EXHAUSTED: "exhausted",
  INTERNAL: "upstream",
  UNKNOWN: "upstream",
  DATA_LOSS: "upstream",
  ABORTED: "upstream",
  CANCELLED: "upstream",
  UNIMPLEMENTED: "upstream",
  UNAVAILABLE: "overloaded",
  DEADLINE_EXCEEDED: "timeout",
};

/** What is told of errors whose own message is about the operator's account. */
const OWN_FAULT = "The upstream refused the gateway's own access";

const CONTEXT = /input token count.*exceeds the maximum/i;

/** Longest message that is passed on, in UTF-16 code units. */
const MESSAGE_LENGTH = 1_000;

/** Reads an error answer. Its message may reach the client, so it holds no address and no key. */
export function readError(status: number, body: Json | undefined): GatewayError {
  return toError(objectOf(objectOf(Array.isArray(body) ? body[0] : body).error), status);
}

/** The error in a piece of an answer; `undefined` where it has none. */
export function errorIn({ error }: JsonObject): GatewayError | undefined {
  if (error === undefined || error === null) return undefined;
  return isObject(error) ? toError(error, countOf(error.code) ?? 500) : toError({}, 500);
}

function toError(error: JsonObject, status: number): GatewayError {
  const details = objectsOf(error.details);
  const name = wordsOf(error.status);
  // A bad key is a bad argument here; only the reason tells.
  const isKey = details.some(({ reason }) => reason === "API_KEY_INVALID") ||
    /\bAPI key\b/i.test(wordsOf(error.message) ?? "");
  const isOurs = isKey || status === 401 || status === 403 || name === "UNAUTHENTICATED" ||
    name === "PERMISSION_DENIED";
  if (isOurs) return new GatewayError("upstream", OWN_FAULT);
  const text = clean(wordsOf(error.message) ?? "") || `The upstream answered with an error (${name ?? status})`;
  const retryAfterMs = readDelay(details);
  return new GatewayError((Object.hasOwn(KINDS, name ?? "") && KINDS[name ?? ""]) || kindOf(status), text, {
    ...(CONTEXT.test(text) && { code: "context_length_exceeded" }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
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

/** One line without addresses, names of projects and what looks like a key. */
function clean(message: string): string {
  const line = message.slice(0, 4 * MESSAGE_LENGTH).replace(/\s+/g, " ")
    .replace(/\bhttps?:\/\/\S+/gi, "…")
    .replace(/\b[\w-]+\.googleapis\.com\S*/gi, "…")
    .replace(/\bprojects\/[\w-]+/gi, "projects/…")
    .replace(/\b(?:AIza|AQ\.|ya29\.|sk-)[\w.-]{8,}/g, "…")
    .trim();
  return line.slice(0, MESSAGE_LENGTH);
}

/** The wait of a `RetryInfo`, such as `34.07s`, in milliseconds. */
function readDelay(details: readonly JsonObject[]): number | undefined {
  for (const { retryDelay } of details) {
    const seconds = /^(\d{1,6}(?:\.\d{1,9})?)s$/.exec(wordsOf(retryDelay) ?? "")?.[1];
    if (seconds !== undefined) return Math.ceil(Number(seconds) * 1_000);
  }
  return undefined;
}
