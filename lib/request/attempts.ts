/** Attempts at targets: their services, their form in the log and the ledger, and what they say about their targets. */
import { delay } from "../abort.ts";
import type { Meter } from "../billing/meter.ts";
import { faultOf } from "../causes.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { ReplyEvent } from "../protocols/canonical/types.ts";
import { classifyFailure } from "../routing/classify_failure.ts";
import type { Attempt, AttemptOptions, EndedAttempt } from "../routing/retry.ts";
import { describeCause } from "../server/cause.ts";
import type { EntryAttempt } from "../store/ledger.ts";
import { plainText } from "../text.ts";
import type { Routing } from "./targets.ts";
import { type Health, type Permit, type TargetKey, targetName } from "../routing/health.ts";

/** Most UTF-16 code units of the message of an attempt or a failure. */
const MESSAGE_CHARACTERS = 300;

/** Services that the attempts of every request use. */
export function attemptsWith<T>(
  gateway: Omit<Routing, "upstreams">,
  { requestId, signal, meter, choices, key, deadlineMs, once, ask, isOver }:
    & Pick<AttemptOptions<T>, "choices" | "key" | "deadlineMs" | "once" | "ask" | "isOver">
    & { requestId: string; signal: AbortSignal; meter: Pick<Meter, "attempted" | "skip"> },
): AttemptOptions<T> {
  const { health, config, observer, monotonic, random } = gateway;
  return {
    choices,
    key,
    deadlineMs,
    once,
    ask,
    isOver,
    health,
    most: config.routing.attempts,
    monotonic,
    random,
    pause: (ms) => delay(ms, signal),
    ended(attempt, ended) {
      const { model, target: { upstream } } = attempt;
      const { outcome, ms } = ended;
      if (outcome !== "unfit") observer.counts.attempted({ upstream, model: model.id, outcome }, ms / 1000);
      meter.attempted(entryAttempt(attempt, ended));
    },
    skipped: (targets) => meter.skip(targets),
    failed: ({ target }: Attempt, error: GatewayError) => reportFailure(error, { target, requestId, gateway }),
  };
}

/** Remembers and logs the failure of a target. */
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
    // Errors of these kinds have texts of our own, without parts of a prompt or an answer.
    reason: message,
    ...(vendor !== undefined && {
      status: vendor.status,
      vendor_message: vendor.message,
      vendor_request_id: vendor.requestId,
    }),
    ...describeCause(cause),
    // A stack of the gateway has no facts about an upstream.
    stack: undefined,
  });
}

/** An attempt whose answer has begun. */
export interface BegunAttempt {
  attempt: Attempt;
  /** By `monotonic`. */
  begunAt: number;
  requestId: string;
  meter: Pick<Meter, "broke">;
  gateway: Pick<Gateway, "health" | "now" | "log" | "monotonic">;
}

/** Records that an answer broke off after its first event, when no other target can answer any more. */
export function recordBrokenAnswer(
  thrown: unknown,
  { attempt, begunAt, requestId, meter, gateway }: BegunAttempt,
): void {
  // Other errors are the gateway's own, or a client's that reads too slowly.
  if (!(thrown instanceof GatewayError) || thrown.kind === "internal" || thrown.kind === "too_slow") return;
  const isClients = classifyFailure(thrown).outcome.type === "neither";
  const ms = gateway.monotonic() - begunAt;
  const outcome = thrown.fault === "oversized" ? "oversized" : "broken";
  meter.broke(entryAttempt(attempt, { outcome, ms, error: thrown, isClients }));
  if (!isClients) reportFailure(thrown, { target: attempt.target, requestId, gateway });
}

/** The entry of an attempt. A message that may quote the client's request is left out. */
function entryAttempt(
  { model, target: { upstream } }: Attempt,
  { outcome, ms, error, isClients = false }: Omit<EndedAttempt, "outcome"> & Pick<EntryAttempt, "outcome">,
): EntryAttempt {
  const attempt: EntryAttempt = { upstream, model: model.id, outcome, ms: Math.round(ms) };
  if (error === undefined) return attempt;
  const { vendor } = error;
  const message = isClients ? undefined : vendor === undefined ? failureText(error) : vendor.message;
  if (vendor !== undefined) attempt.status = vendor.status;
  if (vendor?.code !== undefined) attempt.code = vendor.code;
  if (message !== undefined) attempt.message = plainText(message, MESSAGE_CHARACTERS);
  if (vendor?.requestId !== undefined) attempt.request_id = vendor.requestId;
  return attempt;
}

/** A failure without an answer of the vendor, with the fault of the network. */
function failureText({ message, cause }: GatewayError): string {
  const fault = faultOf(cause);
  return fault === undefined ? message : `${message}: ${fault}`;
}

/** Most targets that are remembered; those that failed longest ago go first. */
const MOST_TARGETS = 1_000;

/** A failure of a target. The log has the same facts as `target_failed`: nothing of a prompt or an answer. */
export interface TargetFailure {
  /** Unix time in milliseconds. */
  at: number;
  /** HTTP status of the vendor; absent: it did not answer. */
  status?: number;
  /** The vendor's message, or the gateway's where the vendor did not answer. */
  message: string;
}

/** By the name of the target. What keeps the health of targets outlives a configuration. */
const failures = new WeakMap<Health, Map<string, TargetFailure>>();

/** Remembers a failure. @param now Unix time in milliseconds */
function recordFailure(health: Health, target: TargetKey, error: GatewayError, now: number): void {
  const known = failures.get(health) ?? new Map<string, TargetFailure>();
  failures.set(health, known);
  const { vendor } = error;
  const name = targetName(target);
  known.delete(name);
  known.set(name, {
    at: now,
    ...(vendor !== undefined && { status: vendor.status }),
    message: plainText(vendor?.message ?? failureText(error), MESSAGE_CHARACTERS),
  });
  const [oldest] = known.keys();
  if (known.size > MOST_TARGETS && oldest !== undefined) known.delete(oldest);
}

/** The last failure of a target since the start of this process. */
export function lastFailure(health: Health, target: TargetKey): TargetFailure | undefined {
  return failures.get(health)?.get(targetName(target));
}

/** Shorter answers say nothing about speed. */
const LEAST_TOKENS = 16;

/** A stream and its target. */
export interface MeasuredStream extends Pick<Gateway, "health" | "monotonic"> {
  permit: Permit;
  /** When the attempt began, by `monotonic`. */
  begunAt: number;
  /** True if the request was given up: the target is not to blame then. */
  isAborted: () => boolean;
  /** Records why the answer broke off. */
  brokeOff: (error: unknown) => void;
}

/** Reports one stream to the health of its target. A failure before the first event is left to the retry. */
export class TargetMeasurement {
  readonly #stream: MeasuredStream;
  #firstAt: number | undefined;

  constructor(stream: MeasuredStream) {
    this.#stream = stream;
  }

  /** The next events of the answer. */
  take(events: readonly ReplyEvent[]): void {
    for (const event of events) {
      if (event.type === "error") this.broken(event.error);
      else if (event.type !== "start" && this.#firstAt === undefined) this.#begin();
      if (event.type === "finish") this.#end(event.usage.completion);
    }
  }

  /** The answer was cut short. */
  broken(error: unknown): void {
    const { health, permit, isAborted, brokeOff } = this.#stream;
    if (this.#firstAt === undefined || isAborted()) return;
    health.report(permit, classifyFailure(error).outcome);
    brokeOff(error);
  }

  #begin(): void {
    const { health, monotonic, permit, begunAt } = this.#stream;
    this.#firstAt = monotonic();
    health.recordSpeed(permit.target, { firstMs: Math.round(this.#firstAt - begunAt) });
  }

  #end(tokens = 0): void {
    const { health, monotonic, permit } = this.#stream;
    const ms = this.#firstAt === undefined ? 0 : monotonic() - this.#firstAt;
    if (tokens >= LEAST_TOKENS && ms > 0) health.recordSpeed(permit.target, { tokensPerSecond: tokens * 1_000 / ms });
  }
}
