/** Classifies the error of an attempt: for the health of its target, and for the attempts that may follow. */
import { type Fault, GatewayError } from "../errors.ts";
import type { TargetOutcome } from "./health.ts";

/** Consequences of a failed attempt. */
export interface FailureClass {
  outcome: TargetOutcome;
  /** Order of a second attempt at the same target: at once, after all others, or never. */
  repeat: "first" | "last" | "never";
  /** Targets that may be asked next: any, those of the next model that the client names, or none. */
  next: "target" | "model" | "none";
  /** True: another attempt may need as much time again. */
  slow?: boolean;
}

/** Facts about the attempt. */
export interface AttemptFacts {
  /** True: work must not be done twice, so errors that are final end the request. */
  once?: boolean;
  /** True: it tried a target whose breaker is half-open. Its error must not cost a client the request. */
  isTrial?: boolean;
}

/** Faults after which the upstream has certainly not begun any work. */
const NOT_BEGUN: ReadonlySet<Fault | undefined> = new Set<Fault>(["unreachable", "key", "access", "credit", "unfit"]);

/** Errors that another model, with another context or moderation, may not have. */
const MODEL_ERRORS: ReadonlySet<string | undefined> = new Set(["context_length_exceeded", "content_policy_violation"]);

/** Longest pause of a target that is waited for, in milliseconds. */
const LONGEST_PAUSE_MS = 2_000;

/** A target that names no time is not asked again: the client can wait better. */
function againAfterPause(retryAfterMs: number | undefined): FailureClass["repeat"] {
  return retryAfterMs !== undefined && retryAfterMs <= LONGEST_PAUSE_MS ? "last" : "never";
}

/** Outcome of an attempt that was sent to an upstream, as metrics name it. */
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

/** Names of the outcomes that have another name in the health of targets. */
const OUTCOME_NAMES = { busy: "overloaded", refused: "key_refused", neither: "rejected" } as const;

/** Returns the outcome of a failed attempt; `undefined` where nothing was sent or the gateway itself failed. */
export function outcomeOfFailure(error: unknown, { type }: TargetOutcome): AttemptOutcome | undefined {
  if (!(error instanceof GatewayError) || error.fault === "unfit" || error.kind === "internal") return undefined;
  if (error.fault === "oversized") return "oversized";
  return type === "busy" || type === "refused" || type === "neither" ? OUTCOME_NAMES[type] : type;
}

const NEITHER: TargetOutcome = { type: "neither" };
const FINAL: FailureClass = { outcome: NEITHER, repeat: "never", next: "none" };

/** Classifies an error that was thrown before the client saw any of the answer. */
export function classifyFailure(error: unknown, { once = false, isTrial = false }: AttemptFacts = {}): FailureClass {
  if (!(error instanceof GatewayError)) return FINAL;
  const found = classifyKind(error);
  if (!once || !error.final || NOT_BEGUN.has(error.fault) || (isTrial && error.fault === "status")) return found;
  return { ...found, repeat: "never", next: "none" };
}

function classifyKind({ kind, fault, code, retryAfterMs }: GatewayError): FailureClass {
  switch (fault) {
    case "unfit":
    case "oversized":
      return { outcome: NEITHER, repeat: "never", next: "target" };
    case "unreachable":
      return { outcome: { type: "unreachable" }, repeat: "first", next: "target" };
    case "key":
      return { outcome: { type: "refused" }, repeat: "never", next: "target" };
    case "access":
      return { outcome: NEITHER, repeat: "never", next: "target" };
    case "credit":
      return { outcome: { type: "limited", retryAfterMs }, repeat: "never", next: "target" };
  }
  switch (kind) {
    case "exhausted":
      return { outcome: { type: "limited", retryAfterMs }, repeat: againAfterPause(retryAfterMs), next: "target" };
    case "overloaded":
      return { outcome: { type: "busy", retryAfterMs }, repeat: againAfterPause(retryAfterMs), next: "target" };
    case "timeout":
      return { outcome: { type: "failure" }, repeat: "never", next: "target", slow: fault !== "status" };
    case "upstream":
      return { outcome: { type: "failure" }, repeat: "never", next: "target" };
    case "not_found":
    case "too_large":
      return { outcome: NEITHER, repeat: "never", next: "model" };
    case "invalid":
      return MODEL_ERRORS.has(code) ? { outcome: NEITHER, repeat: "never", next: "model" } : FINAL;
    default:
      return FINAL;
  }
}
