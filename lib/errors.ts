import { redactSecrets } from "./redact.ts";

/** Every way a request can fail, and the HTTP status it answers with. Each protocol writes its own body for it. */
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

/** One row of the table of errors. */
export type ErrorKind = keyof typeof ERROR_STATUS;

/** The fault at an upstream, where the kind is not precise enough. Routing uses it; it is never sent to a client. */
export type Fault =
  /** No connection could be made: the request has certainly not arrived. */
  | "unreachable"
  /** A kept connection was closed as the request was sent: hosts close idle connections without notice. */
  | "stale"
  /** The upstream answered with an error status. */
  | "status"
  /** The upstream answered 401: it may not accept the gateway's key. */
  | "key"
  /** The upstream answered 403: it refuses the request, or what the gateway's key may do. */
  | "access"
  /** The account at the upstream has no money left. */
  | "credit"
  /** This upstream cannot take the request, which was not sent. */
  | "unfit"
  /** The answer goes beyond a limit that the gateway sets for the shape of answers: the upstream is well. */
  | "oversized"
  /** The time for a whole answer is over, whatever it was spent on. */
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
  /** Amount that was left; absent where it is not known. */
  remaining?: number;
  /** Milliseconds until there is room; absent where no wait helps. */
  free_after_ms?: number;
}

/** The budget that refused a request. Amounts are exact USD, as decimal strings. */
export interface BudgetRefusal {
  scope: "key" | "group" | "user";
  /** Id of the key, name of the group, or the end user of the key; empty for requests that name none. */
  id: string;
  period: "day" | "week" | "month" | "total";
  budget_usd: string;
  /** The remaining amount, and the amount that is held for running requests. */
  left_usd: string;
  held_usd: string;
  /** The most that the request could cost. */
  needed_usd: string;
  /** UTC day on which it resets, such as `2026-12-01`; absent for a budget that never resets. */
  resets_on?: string;
}

/** The permission that a request lacked. */
export interface PermissionRefusal {
  of: "endpoint" | "protocol" | "model";
  /** Public id of the model, or `other` where the catalog has none of the name. */
  name: string;
}

/** A target that a request could not be sent to. */
export interface TargetRefusal {
  upstream: string;
  /** Public id of the model. */
  model: string;
  /** `open`: its breaker is open. `cooling`: it has asked for a pause. `quarantined`: it refuses the gateway's key. */
  why: "open" | "cooling" | "quarantined";
  /** Milliseconds until it can be asked again, as far as known. */
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
  /** Path of the member the client got wrong, such as `messages[0].content`. */
  param?: string;
  /** The rule that an invalid request breaks, without any text of the client; entered in the ledger. */
  rule?: string;
  /** Machine-readable code of the field's own vocabulary, such as `context_length_exceeded`. */
  code?: string;
  /** Response headers, such as `allow`. */
  headers?: Readonly<Record<string, string>>;
  /** Time after which another try makes sense, in milliseconds. */
  retryAfterMs?: number;
  /** True if a retry cannot succeed, although SDKs retry this status. */
  final?: boolean;
  /** The fault at an upstream. */
  fault?: Fault;
  /** The vendor's answer where it was an error; logged, never sent. */
  vendor?: VendorError;
  /** Cause of the refusal; entered in the ledger, never sent. */
  refusal?: Refusal;
  /** The underlying error; logged, never sent. */
  cause?: unknown;
}

/**
 * The one error that reaches a client. Its message is written for that client: it never holds a key, an upstream's
 * address or a stack trace. Secrets of the configuration are removed from all of its texts, wherever these come from.
 * Everything else that is thrown becomes an `internal` error with a fixed text.
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
    super(redactSecrets(message), options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    this.param = options.param === undefined ? undefined : redactSecrets(options.param);
    this.rule = options.rule;
    this.code = isClean(options.code) ? options.code : undefined;
    this.headers = options.headers === undefined ? {} : cleanHeaders(options.headers);
    this.retryAfterMs = options.retryAfterMs;
    this.final = options.final ?? false;
    this.fault = options.fault;
    this.vendor = options.vendor;
    this.refusal = options.refusal;
  }

  /** The same error but for these members. */
  with(changes: ErrorOptions): GatewayError {
    const { kind, message, param, rule, code, headers, retryAfterMs, final, fault, vendor, refusal, cause } = this;
    const own = { param, rule, code, headers, retryAfterMs, final, fault, vendor, refusal, cause };
    return new GatewayError(kind, message, { ...own, ...changes });
  }

  /** The same error with these response headers, too; its own ones win. */
  withHeaders(headers: Readonly<Record<string, string>>): GatewayError {
    return this.with({ headers: { ...headers, ...this.headers } });
  }

  /** HTTP status of the error, by its kind. */
  get status(): number {
    return ERROR_STATUS[this.kind];
  }
}

/** A code that holds a secret is no code. */
function isClean(code: string | undefined): boolean {
  return code !== undefined && redactSecrets(code) === code;
}

function cleanHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, redactSecrets(value)]));
}

/** Converts a thrown value to the error for the client: itself if it is a `GatewayError`, else `internal`. */
export function toGatewayError(thrown: unknown): GatewayError {
  if (thrown instanceof GatewayError) return thrown;
  return new GatewayError("internal", "The gateway failed to answer this request", { cause: thrown });
}

/** The message of a thrown value, for the operator alone. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** The name of a thrown value, for the log. Its message may contain a prompt or a key. */
export function nameOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.name : typeof thrown;
}

/** A phase that took too long, in the words of the error. */
export type LatePhase = "no connection" | "no answer" | "nothing more" | "no whole answer";

/** The error for a phase of an upstream call that took longer than `limitMs`. */
export function upstreamTimeout(phase: LatePhase, limitMs: number): GatewayError {
  const options = phase === "no whole answer" ? { fault: "overtime" as const } : {};
  return new GatewayError("timeout", `The upstream took too long: ${phase} within ${limitMs / 1000} s`, options);
}

/** The error for an answer that its upstream broke off. */
export function cutAnswerError(): GatewayError {
  return new GatewayError("upstream", "The model's answer ended before it was complete");
}

/** The error for a client that left the bytes of an answer unread for `unreadMs`. */
export function unreadError(unreadMs: number): GatewayError {
  const message = `Cannot finish this answer: the client read nothing for more than ${unreadMs / 1000} s`;
  return new GatewayError("too_slow", message);
}
