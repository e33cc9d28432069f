/** Attempts at targets: how they are logged, entered in the ledger, and reported to the health of their targets. */
import { delay } from "../abort.ts";
import type { EntryDraft } from "../billing/entry_draft.ts";
import { describeCause, faultOf } from "../causes.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { ReplyEvent } from "../protocols/canonical/types.ts";
import { classifyFailure } from "../routing/classify_failure.ts";
import { type Attempt, type AttemptOptions, type EndedAttempt, TargetAttempts } from "../routing/retry.ts";
import type { AnswerHeader } from "../server/router.ts";
import type { EntryAttempt } from "../store/ledger.ts";
import { plainText } from "../text.ts";
import { type Routing, targetMs } from "./targets.ts";
import { type Health, type TargetKey, targetName } from "../routing/health.ts";

/** Longest message of an attempt or a failure, in UTF-16 code units. */
const MAX_MESSAGE_LENGTH = 300;

/**
 * Tries the targets of a request until one answers, with the services of the gateway. Without a deadline, the time limit
 * of the first target applies.
 * @throws {GatewayError} as `TargetAttempts.run` of lib/routing/retry.ts
 */
export function tryTargets<T>(
  gateway: Omit<Routing, "upstreams">,
  { requestId, signal, entry, ...own }:
    & Pick<AttemptOptions<T>, "choices" | "key" | "atMostOnce" | "send" | "isOver">
    & { requestId: string; signal: AbortSignal; entry: Pick<EntryDraft, "recordAttempt" | "skipped"> }
    & Partial<Pick<AttemptOptions<T>, "deadlineMs">>,
): Promise<T> {
  const { health, config, observer, monotonic, random } = gateway;
  const [first] = own.choices;
  return new TargetAttempts({
    deadlineMs: first === undefined ? config.images.total_ms : targetMs(first, config),
    ...own,
    health,
    maxAttempts: config.routing.attempts,
    monotonic,
    random,
    pause: (ms) => delay(ms, signal),
    ended(attempt, ended) {
      const { model, target: { upstream } } = attempt;
      const { outcome, ms } = ended;
      if (outcome !== "unfit") observer.counts.attempted({ upstream, model: model.id, outcome }, ms / 1000);
      entry.recordAttempt(entryAttempt(attempt, ended));
    },
    skipped: (targets) => void (entry.skipped = targets),
    failed: ({ target }: Attempt, error: GatewayError) => reportFailure(error, { target, requestId, gateway }),
  }).run();
}

/** Returns the response headers that name the target of the last attempt. */
export function headersOfAttempt(
  { model, target }: Attempt,
  { attempts }: Pick<EntryDraft, "attempts">,
): AnswerHeader[] {
  return [
    ["x-sluice-upstream", target.upstream],
    ["x-sluice-model", model.id],
    ["x-sluice-attempts", String(attempts)],
  ];
}

/** Logs the failure of a target, and keeps it as its last one. */
function reportFailure(
  error: GatewayError,
  { target, requestId, gateway: { health, now, log } }: {
    target: TargetKey;
    requestId: string;
    gateway: Pick<Gateway, "health" | "now" | "log">;
  },
): void {
  const { upstream, model } = target;
  const { kind, message, vendor, cause } = error;
  recordFailure(health, target, error, now());
  log({
    level: "warn",
    event: "target_failed",
    request_id: requestId,
    upstream,
    model,
    kind,
    // The gateway wrote these messages. They contain no part of a prompt or an answer.
    reason: message,
    ...(vendor !== undefined && {
      status: vendor.status,
      vendor_message: vendor.message,
      vendor_request_id: vendor.requestId,
    }),
    ...describeCause(cause),
    // The gateway's own stack says nothing about an upstream.
    stack: undefined,
  });
}

/** An attempt whose answer has begun. */
export interface AnsweredAttempt {
  attempt: Attempt;
  /** When it began, by `monotonic`. */
  begunAt: number;
  requestId: string;
  entry: Pick<EntryDraft, "recordBreak">;
  gateway: Pick<Gateway, "health" | "now" | "log" | "monotonic">;
}

/** Records that an answer broke off after its first event, when no other target can answer any more. */
export function recordBrokenAnswer(
  thrown: unknown,
  { attempt, begunAt, requestId, entry, gateway }: AnsweredAttempt,
): void {
  // Other errors are the gateway's own, or a client's that reads too slowly.
  if (!(thrown instanceof GatewayError) || thrown.kind === "internal" || thrown.kind === "too_slow") return;
  const isClients = classifyFailure(thrown).outcome.type === "neither";
  const ms = gateway.monotonic() - begunAt;
  const outcome = thrown.fault === "oversized" ? "oversized" : "broken";
  entry.recordBreak(entryAttempt(attempt, { outcome, ms, error: thrown, isClients }));
  if (!isClients) reportFailure(thrown, { target: attempt.target, requestId, gateway });
}

/** Returns the ledger's record of an attempt. A message that may quote the client's request is left out. */
function entryAttempt(
  { model, target: { upstream } }: Attempt,
  { outcome, ms, error, isClients = false }: Omit<EndedAttempt, "outcome"> & Pick<EntryAttempt, "outcome">,
): EntryAttempt {
  const entry: EntryAttempt = { upstream, model: model.id, outcome, ms: Math.round(ms) };
  if (error === undefined) return entry;
  const { vendor } = error;
  const failure = vendor === undefined ? failureText(error) : vendor.message;
  const message = isClients ? undefined : failure;
  if (vendor !== undefined) entry.status = vendor.status;
  if (vendor?.code !== undefined) entry.code = vendor.code;
  if (vendor !== undefined && error.retryAfterMs !== undefined) entry.retry_after_ms = Math.ceil(error.retryAfterMs);
  if (message !== undefined) entry.message = plainText(message, MAX_MESSAGE_LENGTH);
  if (vendor?.requestId !== undefined) entry.request_id = vendor.requestId;
  return entry;
}

/** Returns the message of a failure without an answer of the vendor, with the fault of the network. */
function failureText({ message, cause }: GatewayError): string {
  const fault = faultOf(cause);
  return fault === undefined ? message : `${message}: ${fault}`;
}

/** Maximum number of targets whose last failure is kept. The oldest failure is removed first. */
const MAX_TARGETS = 1_000;

/**
 * A failure of a target, without any part of a prompt or an answer. The log event `target_failed` has the same facts.
 */
export interface TargetFailure {
  /** Unix time in milliseconds. */
  at: number;
  /** HTTP status of the vendor; absent if it did not answer. */
  status?: number;
  /** The vendor's message, or the gateway's if the vendor did not answer. */
  message: string;
}

/** Last failures by target name. The key is the health tracker, because it outlives a reload of the configuration. */
const failures = new WeakMap<Health, Map<string, TargetFailure>>();

/** Remembers a failure. @param now Unix time in milliseconds */
function recordFailure(health: Health, target: TargetKey, error: GatewayError, now: number): void {
  const byTarget = failures.get(health) ?? new Map<string, TargetFailure>();
  failures.set(health, byTarget);
  const { vendor } = error;
  const name = targetName(target);
  byTarget.delete(name);
  byTarget.set(name, {
    at: now,
    ...(vendor !== undefined && { status: vendor.status }),
    message: plainText(vendor?.message ?? failureText(error), MAX_MESSAGE_LENGTH),
  });
  const [oldest] = byTarget.keys();
  if (byTarget.size > MAX_TARGETS && oldest !== undefined) byTarget.delete(oldest);
}

/** Returns the last failure of a target since this process started; undefined if there was none. */
export function lastFailure(health: Health, target: TargetKey): TargetFailure | undefined {
  return failures.get(health)?.get(targetName(target));
}

/** Minimum number of tokens of an answer whose speed is measured. The speed of shorter answers means nothing. */
const MIN_MEASURED_TOKENS = 16;

/** The facts that a target measurement needs about a stream. */
export interface MeasuredStream extends AnsweredAttempt {
  /** Aborts with the request. Failures do not count against the target then. */
  signal: AbortSignal;
  /** Records that the answer has begun. */
  answered: () => void;
}

/**
 * Reports the speed and the failure of one stream to the health of its target. `TargetAttempts` reports earlier
 * failures.
 */
export class TargetMeasurement {
  readonly #stream: MeasuredStream;
  #firstAt: number | undefined;

  constructor(stream: MeasuredStream) {
    this.#stream = stream;
  }

  /** Processes the next events of the answer. */
  take(events: readonly ReplyEvent[]): void {
    for (const event of events) {
      if (event.type === "error") this.broken(event.error);
      else if (event.type !== "start" && this.#firstAt === undefined) this.#begin();
      if (event.type === "finish") this.#end(event.usage.completion);
    }
  }

  /** Reports that the answer failed before its end. Nothing is reported before the first event. */
  broken(error: unknown): void {
    const { attempt, gateway, signal } = this.#stream;
    if (this.#firstAt === undefined || signal.aborted) return;
    gateway.health.report(attempt.permit, classifyFailure(error).outcome);
    recordBrokenAnswer(error, this.#stream);
  }

  #begin(): void {
    const { attempt: { target }, gateway: { health, monotonic }, begunAt, answered } = this.#stream;
    answered();
    this.#firstAt = monotonic();
    health.recordSpeed(target, { firstMs: Math.round(this.#firstAt - begunAt) });
  }

  #end(tokens = 0): void {
    const { attempt: { target }, gateway: { health, monotonic } } = this.#stream;
    const ms = this.#firstAt === undefined ? 0 : monotonic() - this.#firstAt;
    if (tokens >= MIN_MEASURED_TOKENS && ms > 0) {
      health.recordSpeed(target, { tokensPerSecond: tokens * 1_000 / ms });
    }
  }
}
