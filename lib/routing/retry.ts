/** Tries targets one after another until one answers: retries, waits, and retry budgets. */
import { GatewayError, type TargetRefusal } from "../errors.ts";
import type { Health, Permit } from "./health.ts";
import type { Choice } from "./plan.ts";
import { type AttemptOutcome, classifyFailure, type FailureClass, outcomeOfFailure } from "./classify_failure.ts";

/** Upper bound of the random time before the first retry, in milliseconds. It doubles with each retry. */
const BACKOFF_MS = 100;
/** Upper bound of the random time before any retry, in milliseconds. */
const MAX_BACKOFF_MS = 2_000;
/** Longest total time that one request waits for targets, in milliseconds. */
const MAX_WAIT_MS = 5_000;

/** Maximum number of unavailable targets that are reported for one request. */
const MAX_REPORTED_TARGETS = 8;

const SUCCESS = { type: "success" } as const;

/** One attempt at a target. */
export interface Attempt extends Choice {
  permit: Permit;
}

/** The end of an attempt. */
export interface EndedAttempt {
  /** `unfit`: the target cannot take the request, so nothing was sent. */
  outcome: AttemptOutcome | "unfit";
  /** Time until the answer began or the attempt failed, in milliseconds. */
  ms: number;
  /** Absent for a success, and if the client has disconnected. */
  error?: GatewayError;
  /** True if the client may be at fault. The error may quote its request then. */
  isClients?: boolean;
}

/** Options of the attempts of one request. */
export interface AttemptOptions<T> {
  /** Targets to try, the best first. */
  choices: readonly Choice[];
  /** Client key of the request. */
  key: string;
  health: Health;
  /** Maximum number of attempts. Repeats at a target leave enough attempts for the targets that were not tried yet. */
  maxAttempts: number;
  /** Time within which the last attempt must begin, in milliseconds. */
  deadlineMs: number;
  /** True if an attempt that may have begun its work must not be repeated. */
  atMostOnce?: boolean;
  /** A monotonic clock, in milliseconds. */
  monotonic: () => number;
  /** Returns a random number from 0 to less than 1. */
  random: () => number;
  /** Waits. @throws the reason of an abort meanwhile */
  pause: (ms: number) => Promise<void>;
  /**
   * Makes one attempt. It resolves as soon as the client may receive a part of the answer: no other attempt follows.
   * It may call `answered` as soon as the answer has begun. A later failure is then reported in addition.
   */
  send: (attempt: Attempt, answered: () => void) => Promise<T>;
  /** Returns true if no other attempt is wanted, for example because the client has disconnected. */
  isOver: () => boolean;
  /** Called at the end of each attempt, or when its answer begins. */
  ended?: (attempt: Attempt, ended: EndedAttempt) => void;
  /** Called at the end with the targets that were skipped because they were unavailable. */
  skipped?: (targets: TargetRefusal[]) => void;
  /** Called for each failed attempt that is not the client's fault. */
  failed?: (attempt: Attempt, error: GatewayError) => void;
}

/**
 * Draws the time before a retry, in ms. Full jitter keeps requests that failed together from being retried together.
 */
export function backoffMs(retries: number, random: () => number): number {
  return random() * Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** Math.min(retries, 10));
}

/** A choice that may still be tried. */
interface Candidate {
  choice: Choice;
  /** True if the target was tried before. */
  wasTried: boolean;
}

/** The candidate to try next, with its permit. */
interface NextCandidate {
  candidate: Candidate;
  permit: Permit;
  /** True if the other candidates are not tried any more, because there is no retry budget for them. */
  isLast?: boolean;
}

/** The attempts of one request. */
export class TargetAttempts<T> {
  readonly #parts: AttemptOptions<T>;
  readonly #start: number;
  readonly #tried: Choice[] = [];
  /** Remaining candidates, the next one first. */
  #remaining: Candidate[] = [];
  /** Candidates to repeat if no other is left. */
  #toRepeat: Candidate[] = [];
  /** Attempts that count. An attempt at a target that cannot take the request does not. */
  #counted = 0;
  #lastError: unknown;
  #waits = 0;
  #waitedMs = 0;

  constructor(parts: AttemptOptions<T>) {
    this.#parts = parts;
    this.#start = parts.monotonic();
    for (const choice of parts.choices) this.#remaining.push({ choice, wasTried: false });
  }

  /**
   * Tries targets until one answers.
   * @throws {GatewayError} the error of the last attempt. If no target is available at all, `exhausted` if all of them
   * are at their limits, otherwise `overloaded`, with the time after which one is available
   */
  async run(): Promise<T> {
    const { health, send, ended } = this.#parts;
    while (true) {
      if (this.#remaining[0]?.wasTried === true) await this.#parts.pause(backoffMs(this.#waits++, this.#parts.random));
      const next = this.#find(this.#remaining) ?? await this.#wait();
      if (next === undefined) return this.#giveUp();
      const { candidate, permit, isLast = false } = next;
      if (isLast) this.#remaining = [];
      removeCandidate(this.#remaining, candidate);
      removeCandidate(this.#toRepeat, candidate);
      const { model, target } = candidate.choice;
      if (this.#counted++ === 0) health.retryBudget(target).deposit();
      this.#tried.push(candidate.choice);
      const attempt = { model, target, permit };
      const begunAt = this.#parts.monotonic();
      let hasAnswered = false;
      const answered = () => {
        if (hasAnswered) return;
        hasAnswered = true;
        health.report(permit, SUCCESS);
        ended?.(attempt, { outcome: "success", ms: this.#parts.monotonic() - begunAt });
        this.#reportSkipped(candidate.choice);
      };
      try {
        const answer = await send(attempt, answered);
        answered();
        return answer;
      } catch (error) {
        if (hasAnswered) throw error;
        try {
          this.#failed(error, { candidate, attempt, begunAt });
        } catch (last) {
          this.#reportSkipped();
          throw last;
        }
      }
    }
  }

  /**
   * Finds the first candidate that may be tried now. The last attempt prefers targets that were not tried yet, and
   * among them targets that are up.
   */
  #find(candidates: readonly Candidate[]): NextCandidate | undefined {
    const { health, key, maxAttempts } = this.#parts;
    if (this.#counted > 0 && this.#counted >= maxAttempts - 1) {
      const untried = candidates.filter(({ wasTried }) => !wasTried);
      const next = this.#findAvailable(untried.filter(({ choice }) => health.isUp(choice.target, key))) ??
        this.#findAvailable(untried);
      if (next !== undefined) return next;
    }
    return this.#findAvailable(candidates) ?? (this.#counted === 0 ? undefined : this.#findOpen(candidates));
  }

  /** Finds the first available candidate for which there is a retry budget. The last untried one needs no budget. */
  #findAvailable(candidates: readonly Candidate[]): NextCandidate | undefined {
    const { health, key, monotonic } = this.#parts;
    for (const candidate of candidates) {
      const { choice: { target }, wasTried } = candidate;
      // A target that was not tried yet and has not failed recently needs no budget.
      const needsBudget = this.#counted > 0 && (wasTried || health.isFailing(target, key));
      if (needsBudget && !health.retryBudget(target).has(monotonic())) continue;
      const permit = this.#admit(candidate);
      if (permit === undefined) continue;
      if (needsBudget) health.retryBudget(target).take();
      return { candidate, permit };
    }
    for (const candidate of candidates.toReversed()) {
      const permit = candidate.wasTried ? undefined : this.#admit(candidate);
      if (permit !== undefined) return { candidate, permit, isLast: true };
    }
    return undefined;
  }

  /**
   * Finds a target whose breaker is open. It may have recovered, so a request without any other target tries it, which
   * takes one token of the retry budget.
   */
  #findOpen(candidates: readonly Candidate[]): NextCandidate | undefined {
    for (const candidate of candidates) {
      const budget = this.#parts.health.retryBudget(candidate.choice.target);
      if (candidate.wasTried || !budget.has(this.#parts.monotonic())) continue;
      const permit = this.#admit(candidate, true);
      if (permit === undefined) continue;
      budget.take();
      return { candidate, permit, isLast: true };
    }
    return undefined;
  }

  #admit({ choice: { model, target } }: Candidate, early = false): Permit | undefined {
    const { health, key } = this.#parts;
    const decision = health.acquirePermit({ model, target, key, early });
    return decision.granted ? decision.permit : undefined;
  }

  /** Waits for a target that has said when it can be tried again. @returns `undefined` if waiting does not help */
  async #wait(): Promise<NextCandidate | undefined> {
    const { random, pause, deadlineMs } = this.#parts;
    while (this.#tried.length > 0) {
      const waits = this.#toRepeat.flatMap((candidate) => this.#pauseMs(candidate) ?? []);
      const ms = Math.min(...waits) + Math.max(1, backoffMs(this.#waits++, random));
      this.#waitedMs += ms;
      // Without a candidate the wait is infinite. Answers to other requests may have lengthened the pause meanwhile.
      if (this.#waitedMs > MAX_WAIT_MS || this.#elapsedMs() + ms > deadlineMs) return undefined;
      await pause(ms);
      const next = this.#find([...this.#remaining, ...this.#toRepeat]);
      if (next !== undefined) return next;
    }
  }

  /** Returns the milliseconds until a candidate can be tried again; `undefined` if they are not known. */
  #pauseMs({ choice }: Candidate): number | undefined {
    const unavailability = this.#parts.health.unavailability(choice.target, this.#parts.key);
    if (unavailability === undefined) return 0;
    return unavailability.why === "cooling" ? unavailability.waitMs : undefined;
  }

  /** Handles the failure of an attempt. @throws the error of the request if no other attempt may follow */
  #failed(
    error: unknown,
    { candidate, attempt, begunAt }: { candidate: Candidate; attempt: Attempt; begunAt: number },
  ): void {
    const { health, atMostOnce = false, isOver, monotonic } = this.#parts;
    const { permit } = attempt;
    const failure = classifyFailure(error, { atMostOnce, isTrial: permit.isTrial });
    const { type } = failure.outcome;
    // An attempt that ended because the client disconnected says nothing about the target.
    const isDone = isOver();
    health.report(permit, isDone ? { type: "neither" } : failure.outcome);
    const ms = monotonic() - begunAt;
    if (isDone) this.#parts.ended?.(attempt, { outcome: "client_disconnected", ms });
    if (isDone || !(error instanceof GatewayError)) throw error;
    const isReported = type !== "neither" || error.kind === "not_found" || error.fault === "access" ||
      error.fault === "quota";
    const outcome = error.fault === "unfit" ? "unfit" : outcomeOfFailure(error, failure.outcome);
    if (outcome !== undefined) this.#parts.ended?.(attempt, { outcome, ms, error, isClients: !isReported });
    if (isReported) this.#parts.failed?.(attempt, error);
    // Prefer a failure that may end to that of a target that cannot serve the request at all.
    const isLasting = error.fault === "unfit" || error.fault === "quota" || error.kind === "not_found";
    if (!isLasting || this.#lastError === undefined) this.#lastError = error;
    this.#updateCandidates(candidate, { failure, error });
    if (!this.#mayGoOn(failure)) throw this.#lastError;
  }

  /** Updates the candidates after a failure. */
  #updateCandidates(candidate: Candidate, { failure, error }: { failure: FailureClass; error: GatewayError }): void {
    const { repeat, next } = failure;
    const { choice, wasTried } = candidate;
    if (error.fault === "unfit") this.#counted--;
    if (next === "model") {
      const isOther = (other: Candidate) => other.choice.model !== choice.model;
      this.#remaining = this.#remaining.filter(isOther);
      this.#toRepeat = this.#toRepeat.filter(isOther);
    }
    if (wasTried || repeat === "never") return;
    const repeated = { choice, wasTried: true };
    if (repeat === "now" && this.#hasAttemptToSpare()) this.#remaining.unshift(repeated);
    else this.#toRepeat.push(repeated);
  }

  /** Returns true if attempts are left for all untried targets and one more. */
  #hasAttemptToSpare(): boolean {
    const { health, key } = this.#parts;
    const untried = this.#remaining.filter(({ choice, wasTried }) =>
      !wasTried && health.unavailability(choice.target, key) === undefined
    );
    return this.#parts.maxAttempts - this.#counted > untried.length;
  }

  #mayGoOn({ next, slow = false }: FailureClass): boolean {
    const { deadlineMs, maxAttempts } = this.#parts;
    const elapsed = this.#elapsedMs();
    return next !== "none" && this.#counted < maxAttempts && elapsed < (slow ? deadlineMs / 2 : deadlineMs) &&
      this.#remaining.length + this.#toRepeat.length > 0;
  }

  #giveUp(): never {
    if (this.#lastError !== undefined) {
      this.#reportSkipped();
      throw this.#lastError;
    }
    throw noTargetError(this.#parts);
  }

  /** Reports unavailable targets that were skipped. Targets after the one that answered were not skipped. */
  #reportSkipped(answered?: Choice): void {
    const { choices, skipped } = this.#parts;
    if (choices.length === 1 || skipped === undefined) return;
    const models = answered === undefined ? [] : [...new Set(choices.map(({ model }) => model))];
    const isBefore = ({ model, target }: Choice) =>
      answered === undefined ||
      (model === answered.model
        ? target.priority <= answered.target.priority
        : models.indexOf(model) < models.indexOf(answered.model));
    const untried = choices.filter((choice) => !this.#tried.includes(choice) && isBefore(choice));
    const refusals = refusalsOf({ ...this.#parts, choices: untried });
    if (refusals.length > 0) skipped(refusals.slice(0, MAX_REPORTED_TARGETS));
  }

  #elapsedMs(): number {
    return this.#parts.monotonic() - this.#start;
  }
}

function removeCandidate(candidates: Candidate[], candidate: Candidate): void {
  const index = candidates.indexOf(candidate);
  if (index >= 0) candidates.splice(index, 1);
}

/** Returns the unavailable targets, with the reasons. */
function refusalsOf(
  { choices, health, key }: Pick<AttemptOptions<unknown>, "choices" | "health" | "key">,
): TargetRefusal[] {
  return choices.flatMap(({ model: { id: model }, target: { upstream }, target }): TargetRefusal[] => {
    const unavailability = health.unavailability(target, key);
    if (unavailability === undefined) return [];
    return [{ upstream, model, why: unavailability.why, wait_ms: Math.ceil(unavailability.waitMs) }];
  });
}

/** Returns the error for a request without an available target, with the time after which one is available. */
function noTargetError(
  { choices, health, key }: Pick<AttemptOptions<unknown>, "choices" | "health" | "key">,
): GatewayError {
  const name = choices[0] === undefined ? "This model" : `Model "${choices[0].model.id}"`;
  const refusals = refusalsOf({ choices, health, key });
  if (refusals.length === 0) return new GatewayError("overloaded", `${name} has no upstream that could answer`);
  const options = {
    retryAfterMs: Math.min(...refusals.map(({ wait_ms }) => wait_ms)),
    refusal: { targets: refusals.slice(0, MAX_REPORTED_TARGETS) },
  };
  return refusals.every(({ why }) => why === "cooling")
    ? new GatewayError("exhausted", `${name} is at the limit of all its upstreams`, options)
    : new GatewayError("overloaded", `${name} has no upstream available at the moment`, options);
}
