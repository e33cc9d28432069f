/** The errors that clients get, the facts about them for the operator, and helpers for thrown values. */
import { redactSecrets } from "./redact.ts";
import { characterEnd } from "./text.ts";

/** Every kind of error and the HTTP status of its response. Each protocol writes the body in its own shape. */
export const ERROR_STATUS = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  too_slow: 408,
  too_large: 413,
  unsupported_media_type: 415,
  upgrade_required: 426,
  /** A limit of the gateway. */
  limited: 429,
  /** A limit of the upstream. */
  exhausted: 429,
  internal: 500,
  upstream: 502,
  overloaded: 503,
  timeout: 504,
} as const;

/** A kind of error. */
export type ErrorKind = keyof typeof ERROR_STATUS;

/**
 * The fault at an upstream, if the kind of error is not precise enough. Routing uses it; it is never sent to a client.
 */
export type Fault =
  /** No connection could be made: the request has certainly not arrived. */
  | "unreachable"
  /** A reused connection was closed while the request was sent: hosts close idle connections without notice. */
  | "stale"
  /** The upstream answered with an error status. */
  | "status"
  /** The upstream answered 401: it may not accept the gateway's key. */
  | "key"
  /** The upstream answered 403: it refuses the request, or the gateway's key lacks a permission. */
  | "access"
  /** The account at the upstream has no money left. */
  | "credit"
  /** The request alone exceeds the tokens that the account at the upstream may use per minute. */
  | "quota"
  /** This upstream cannot take the request, which was not sent. */
  | "unfit"
  /** The answer exceeds a limit of the gateway on the size or shape of answers. The upstream itself is healthy. */
  | "oversized"
  /** The time limit for a whole answer has passed. */
  | "overtime";

/** Facts of a vendor's error answer, without secrets. */
export interface VendorError {
  /** HTTP status. */
  status: number;
  /** The vendor's own code or type of the error, such as `insufficient_quota`. */
  code?: string;
  message?: string;
  /** The vendor's id of the request, for its support. */
  requestId?: string;
}

/** The limit that refused a request. */
export interface LimitRefusal {
  scope: "key" | "group" | "model";
  /** Id of the key or model, or name of the group. */
  id: string;
  unit: "requests" | "tokens" | "concurrency";
  limit: number;
  /** Amount that the request needed. */
  needed: number;
  /** Amount that was left; absent if unknown. */
  remaining?: number;
  /** Milliseconds until the request would fit; absent if waiting does not help. */
  free_after_ms?: number;
}

/** The budget that refused a request. Amounts are exact USD, as decimal strings. */
export interface BudgetRefusal {
  scope: "key" | "group" | "user";
  /** Id of the key, name of the group, or the end user of the key; empty for requests that name none. */
  id: string;
  period: "day" | "week" | "month" | "total";
  budget_usd: string;
  /** Amount that was left. */
  left_usd: string;
  /** Amount that is held for running requests. */
  held_usd: string;
  /** The most that the request could cost. */
  needed_usd: string;
  /** UTC day on which it resets, such as `2026-12-01`; absent for a budget that never resets. */
  resets_on?: string;
}

/** The permission that a request lacked. */
export interface PermissionRefusal {
  of: "endpoint" | "protocol" | "model";
  /** Name of the endpoint or protocol, or public id of the model; `other` if the catalog has no such model. */
  name: string;
}

/** A target that a request could not be sent to. */
export interface TargetRefusal {
  upstream: string;
  /** Public id of the model. */
  model: string;
  /**
   * `open`: its circuit breaker is open. `cooling`: it asked for a pause. `quarantined`: it refuses the gateway's key.
   */
  why: "open" | "cooling" | "quarantined";
  /** Milliseconds until it can be tried again, as far as known. */
  wait_ms: number;
}

/** The ledger or store that the gateway could not reach or write. */
export type OutageRefusal = "ledger" | "store" | "limits_store";

/** The cause of a refusal: facts for the operator that the client does not get. */
export type Refusal =
  | { limit: LimitRefusal }
  | { budget: BudgetRefusal }
  | { permission: PermissionRefusal }
  | { targets: readonly TargetRefusal[] }
  | { outage: OutageRefusal };

/** Optional members of an error. */
export interface ErrorOptions {
  /** Path of the member that is wrong, such as `messages[0].content`. */
  param?: string;
  /** The rule that an invalid request breaks, without any text from the client; entered in the ledger. */
  rule?: string;
  /** Machine-readable code as vendors use it, such as `context_length_exceeded`. */
  code?: string;
  /** Response headers, such as `allow`. */
  headers?: Readonly<Record<string, string>>;
  /** Time after which a retry makes sense, in milliseconds. */
  retryAfterMs?: number;
  /** True if a retry cannot succeed, although SDKs retry this status; absent: false. */
  final?: boolean;
  /** The fault at an upstream. */
  fault?: Fault;
  /** Facts of the vendor's error answer; logged, never sent. */
  vendor?: VendorError;
  /** Cause of the refusal; entered in the ledger, never sent. */
  refusal?: Refusal;
  /** The underlying error; logged, never sent. */
  cause?: unknown;
}

/** Longest message and longest parameter, in UTF-16 code units. */
const MAX_TEXT_LENGTH = 4_096;

/** The end of a text that was cut. */
const CUT_MARK = "…[cut]";

/** Cuts a text that quotes a large body: removing secrets from 7 MB of backslashes blocked the event loop for 20 s. */
function cutText(text: string): string {
  if (text.length <= MAX_TEXT_LENGTH) return text;
  return text.slice(0, characterEnd(text, MAX_TEXT_LENGTH - CUT_MARK.length)) + CUT_MARK;
}

/** Returns whether a message or parameter of an error was cut. */
export function isCut(text: string): boolean {
  return text.endsWith(CUT_MARK);
}

/**
 * The only error that clients see. Its message is written for them and never contains a key, an upstream's address or a
 * stack trace. Secrets of the configuration are removed from all of its texts, whatever their source. Any other thrown
 * value becomes an `internal` error with a fixed text.
 */
export class GatewayError extends Error {
  override readonly name = "GatewayError";
  readonly kind: ErrorKind;
  readonly param: string | undefined;
  readonly rule: string | undefined;
  readonly code: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly retryAfterMs: number | undefined;
  readonly final: boolean;
  readonly fault: Fault | undefined;
  readonly vendor: VendorError | undefined;
  readonly refusal: Refusal | undefined;

  constructor(kind: ErrorKind, message: string, options: ErrorOptions = {}) {
    super(redactSecrets(cutText(message)), options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    const { param } = options;
    this.param = param === undefined ? undefined : redactSecrets(cutText(param));
    this.rule = options.rule;
    this.code = isClean(options.code) ? options.code : undefined;
    this.headers = options.headers === undefined ? {} : cleanHeaders(options.headers);
    this.retryAfterMs = options.retryAfterMs;
    this.final = options.final ?? false;
    this.fault = options.fault;
    this.vendor = options.vendor;
    this.refusal = options.refusal;
  }

  /** Returns a copy of the error with some members replaced. */
  with(changes: ErrorOptions): GatewayError {
    const { kind, message, param, rule, code, headers, retryAfterMs, final, fault, vendor, refusal, cause } = this;
    const own = { param, rule, code, headers, retryAfterMs, final, fault, vendor, refusal, cause };
    return new GatewayError(kind, message, { ...own, ...changes });
  }

  /** Returns a copy of the error with further response headers. Its own headers win. */
  withHeaders(headers: Readonly<Record<string, string>>): GatewayError {
    return this.with({ headers: { ...headers, ...this.headers } });
  }

  /** HTTP status of the error, by its kind. */
  get status(): number {
    return ERROR_STATUS[this.kind];
  }
}

/** Returns whether a code exists and contains no secret. A code with a secret is dropped. */
function isClean(code: string | undefined): boolean {
  return code !== undefined && redactSecrets(code) === code;
}

function cleanHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, redactSecrets(value)]));
}

/** Returns a thrown value as the error for the client: itself if it is a `GatewayError`, else an `internal` error. */
export function toGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  return new GatewayError("internal", "The gateway failed to answer this request", { cause: thrown });
}

/** Deno's text about a file that a compiled executable may not use. Its advice is about compiling. */
const DENIED_FILE = /^Requires (read|write) access to (".*?"), specify the required permissions during compilation/;

/** The folders that the executable may use: those of the task `compile`. */
const EXECUTABLE_FOLDERS: Readonly<Record<string, string>> = {
  read: "the current folder, /etc/sluice and /var/lib/sluice",
  write: "./data and /var/lib/sluice",
};

/** Returns the message of a thrown value, for the operator only. It may contain a prompt or a key. */
export function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  const [, access, path] = DENIED_FILE.exec(thrown.message) ?? [];
  if (access === undefined) return thrown.message;
  return `this executable may not ${access} ${path}, but only files in ${EXECUTABLE_FOLDERS[access]}`;
}

/** Returns the name of a thrown value, for the log, where its message must not be: it may contain a prompt or a key. */
export function nameOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.name : typeof thrown;
}

/** A phase of an upstream call that took too long, as the error message words it. */
export type LatePhase = "no connection" | "no answer" | "nothing more" | "no whole answer";

/** Returns the error for a phase of an upstream call that took longer than `limitMs`. */
export function upstreamTimeout(phase: LatePhase, limitMs: number): GatewayError {
  const options = phase === "no whole answer" ? { fault: "overtime" as const } : {};
  return new GatewayError("timeout", `The upstream took too long: ${phase} within ${limitMs / 1000} s`, options);
}

/** Returns the error for an answer that the upstream broke off. */
export function cutAnswerError(): GatewayError {
  return new GatewayError("upstream", "The model's answer ended before it was complete");
}

/** Returns the error for a client that did not read the bytes of an answer for `unreadMs`. */
export function unreadError(unreadMs: number): GatewayError {
  const message = `Cannot finish this answer: the client read nothing for more than ${unreadMs / 1000} s`;
  return new GatewayError("too_slow", message);
}
