/** What an error of an attempt means: for the health of its target, and for what may follow it. */
import { type Fault, GatewayError } from "../errors.ts";
import type { TargetOutcome } from "./health.ts";

/** What a failed attempt is followed by. */
export interface FailureClass {
  outcome: TargetOutcome;
  /** Whether the same target may be asked once more: first of all, or as a last resort. */
  again: "first" | "last" | "never";
  /** Who may be asked next: any target, those of the next model that the client names, or nobody. */
  next: "target" | "model" | "nobody";
  /** True: so much time was lost that another attempt needs at least as much again. */
  slow?: boolean;
}

/** What the attempt was. */
export interface AttemptFacts {
  /** True: what was begun must not be begun twice, so that errors that are final end the request. */
  once?: boolean;
  /** True: it tried a target whose breaker is half-open. An error that the target answered with costs no client its request. */
  isTrial?: boolean;
}

/** Faults after which certainly nothing was begun. */
const NOT_BEGUN: ReadonlySet<Fault | undefined> = new Set<Fault>(["unreachable", "key", "access", "credit", "unfit"]);

/** Errors that a model with another context or another moderation may not have. */
const OF_THE_MODEL: ReadonlySet<string | undefined> = new Set(["context_length_exceeded", "content_policy_violation"]);

/** Longest wait for a target that says when it can be asked again, in milliseconds. */
const MOST_TOLD_MS = 2_000;

/** Who does not say when is not asked again: the client can wait better. */
function againAfter(retryAfterMs: number | undefined): FailureClass["again"] {
  return retryAfterMs !== undefined && retryAfterMs <= MOST_TOLD_MS ? "last" : "never";
}

const NEITHER: TargetOutcome = { type: "neither" };
const OVER: FailureClass = { outcome: NEITHER, again: "never", next: "nobody" };

/** Judges what was thrown by an attempt before the client saw anything of it. */
export function classifyFailure(error: unknown, { once = false, isTrial = false }: AttemptFacts = {}): FailureClass {
  if (!(error instanceof GatewayError)) return OVER;
  const verdict = judgeKind(error);
  if (!once || !error.final || NOT_BEGUN.has(error.fault) || (isTrial && error.fault === "status")) return verdict;
  return { ...verdict, again: "never", next: "nobody" };
}

function judgeKind({ kind, fault, code, retryAfterMs }: GatewayError): FailureClass {
  switch (fault) {
    case "unfit":
    case "oversized":
      return { outcome: NEITHER, again: "never", next: "target" };
    case "unreachable":
      return { outcome: { type: "unreachable" }, again: "first", next: "target" };
    case "key":
      return { outcome: { type: "refused" }, again: "never", next: "target" };
    case "access":
      return { outcome: NEITHER, again: "never", next: "target" };
    case "credit":
      return { outcome: { type: "limited", retryAfterMs }, again: "never", next: "target" };
  }
  switch (kind) {
    case "exhausted":
      return { outcome: { type: "limited", retryAfterMs }, again: againAfter(retryAfterMs), next: "target" };
    case "overloaded":
      return { outcome: { type: "busy", retryAfterMs }, again: againAfter(retryAfterMs), next: "target" };
    case "timeout":
      return { outcome: { type: "failure" }, again: "never", next: "target", slow: fault !== "status" };
    case "upstream":
      return { outcome: { type: "failure" }, again: "never", next: "target" };
    case "not_found":
    case "too_large":
      return { outcome: NEITHER, again: "never", next: "model" };
    case "invalid":
      return OF_THE_MODEL.has(code) ? { outcome: NEITHER, again: "never", next: "model" } : OVER;
    default:
      return OVER;
  }
}
