/** Classifies the error of an attempt: what it says about the target's health, and which attempts may follow. */
import { type Fault, GatewayError } from "../errors.ts";
import type { TargetOutcome } from "./health.ts";

/** Consequences of a failed attempt. */
export interface FailureClass {
  outcome: TargetOutcome;
  /** When the same target may be tried again: at once, after all other targets, or never. */
  repeat: "now" | "last" | "never";
  /** Targets that may be tried next: any target, only targets of other models, or none. */
  next: "target" | "model" | "none";
  /** True if the attempt was slow, so that another one may need as much time again. */
  slow?: boolean;
}

/** Faults after which the upstream has certainly not begun to work. */
const FAULTS_BEFORE_WORK: ReadonlySet<Fault | undefined> = new Set<Fault>([
  "unreachable",
  "key",
  "access",
  "credit",
  "quota",
  "unfit",
]);

/** Codes of errors that depend on the model's context or moderation: another model may accept the request. */
const MODEL_ERRORS: ReadonlySet<string | undefined> = new Set(["context_length_exceeded", "content_policy_violation"]);

/** Longest `retry-after` of a target after which the same request may try it again, in milliseconds. */
const MAX_PAUSE_MS = 2_000;

/** Returns when a target may be tried again: after all others if it requested a short pause, otherwise never. */
function repeatAfterPause(retryAfterMs: number | undefined): FailureClass["repeat"] {
  return retryAfterMs !== undefined && retryAfterMs <= MAX_PAUSE_MS ? "last" : "never";
}

/** Outcome of an attempt that was sent to an upstream, as it appears in metrics. */
export type AttemptOutcome =
  | "success"
  | "failure"
  | "unreachable"
  | "limited"
  | "overloaded"
  | "key_refused"
  /** The upstream rejected the request: bad parameters, an unknown model, a missing permission. */
  | "rejected"
  /** The answer exceeds the gateway's limits. */
  | "oversized"
  /** The client disconnected first. */
  | "client_disconnected";

/** Names in metrics of outcomes that have another name in `TargetOutcome`. */
const OUTCOME_NAMES = { busy: "overloaded", refused: "key_refused", neither: "rejected" } as const;

/** Returns the outcome of a failed attempt; `undefined` if nothing was sent or the gateway itself failed. */
export function outcomeOfFailure(error: unknown, { type }: TargetOutcome): AttemptOutcome | undefined {
  if (!(error instanceof GatewayError) || error.fault === "unfit" || error.kind === "internal") return undefined;
  if (error.fault === "oversized") return "oversized";
  return type === "busy" || type === "refused" || type === "neither" ? OUTCOME_NAMES[type] : type;
}

/** The outcome of an error that says nothing about the health of the target. */
const NO_VERDICT: TargetOutcome = { type: "neither" };
const FINAL: FailureClass = { outcome: NO_VERDICT, repeat: "never", next: "none" };

/**
 * Classifies an error that was thrown before the client received any part of the answer.
 * @param attempt `atMostOnce`: work must not be done twice, so final errors end the request; `isTrial`: the target's
 * breaker was half-open, and an error of a trial must not fail the client's request
 */
export function classifyFailure(
  error: unknown,
  { atMostOnce = false, isTrial = false }: { atMostOnce?: boolean; isTrial?: boolean } = {},
): FailureClass {
  if (!(error instanceof GatewayError)) return FINAL;
  const failureClass = classifyError(error);
  const mayFollow = !error.final || FAULTS_BEFORE_WORK.has(error.fault) || (isTrial && error.fault === "status");
  if (!atMostOnce || mayFollow) return failureClass;
  return { ...failureClass, repeat: "never", next: "none" };
}

function classifyError({ kind, fault, code, retryAfterMs }: GatewayError): FailureClass {
  switch (fault) {
    case "unfit":
    case "oversized":
      return { outcome: NO_VERDICT, repeat: "never", next: "target" };
    case "unreachable":
      return { outcome: { type: "unreachable" }, repeat: "now", next: "target" };
    case "key":
      return { outcome: { type: "refused" }, repeat: "never", next: "target" };
    case "access":
    case "quota":
      return { outcome: NO_VERDICT, repeat: "never", next: "target" };
    case "credit":
      return { outcome: { type: "limited", retryAfterMs }, repeat: "never", next: "target" };
  }
  switch (kind) {
    case "exhausted":
      return { outcome: { type: "limited", retryAfterMs }, repeat: repeatAfterPause(retryAfterMs), next: "target" };
    case "overloaded":
      return { outcome: { type: "busy", retryAfterMs }, repeat: repeatAfterPause(retryAfterMs), next: "target" };
    case "timeout":
      // The fault `status` is a 504 that the upstream sent, which may have come at once.
      return { outcome: { type: "failure" }, repeat: "never", next: "target", slow: fault !== "status" };
    case "upstream":
      return { outcome: { type: "failure" }, repeat: "never", next: "target" };
    case "not_found":
      // The vendor has withdrawn the model, or an account or a deployment lacks it. Other targets may have it.
      return { outcome: NO_VERDICT, repeat: "never", next: "target" };
    case "too_large":
      return { outcome: NO_VERDICT, repeat: "never", next: "model" };
    case "invalid":
      return MODEL_ERRORS.has(code) ? { outcome: NO_VERDICT, repeat: "never", next: "model" } : FINAL;
    default:
      return FINAL;
  }
}
