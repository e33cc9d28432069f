/** Asks targets, one after another, until one answers. */
import { GatewayError, type TargetRefusal } from "../errors.ts";
import type { Health, Permit } from "./health.ts";
import type { Choice } from "./plan.ts";
import { type AttemptOutcome, classifyFailure, type FailureClass, outcomeOfFailure } from "./classify_failure.ts";

/** Bound of the random time before a retry, in milliseconds: at first, doubled each time, and at most. */
const BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 2_000;
/** Longest sum of the waits of one request for a target, in milliseconds. */
const MAX_WAIT_MS = 5_000;

/** Most targets that the error of a request names to the operator. */
const NAMED_TARGETS = 8;

const SUCCESS = { type: "success" } as const;

/** One attempt at a target. */
export interface Attempt extends Choice {
  permit: Permit;
  /** Counted from 1. */
  number: number;
}

/** The end of an attempt. */
export interface EndedAttempt {
  /** `unfit`: the target cannot express the request, so nothing was sent. */
  outcome: AttemptOutcome | "unfit";
  ms: number;
  /** Absent for a success, and where the client has disconnected. */
  error?: GatewayError;
  /** True if the client may be at fault: the error may quote its request. */
  isClients?: boolean;
}

/** Options of the attempts of one request. */
export interface AttemptOptions<T> {
  /** The best first. */
  choices: readonly Choice[];
  /** The client key whose request it is. */
  key: string;
  health: Health;
  /** Most attempts. Repeats at a target leave enough of them for the targets that were not asked yet. */
  maxAttempts: number;
  /** Time in which the last attempt must begin, in milliseconds. */
  deadlineMs: number;
  /** True: an attempt that may have begun its work is not repeated. */
  once?: boolean;
  /** Milliseconds of a monotonic clock. */
  monotonic: () => number;
  /** Returns a number from 0 up to, not including, 1. */
  random: () => number;
  /** Waits. @throws the reason of an abort meanwhile */
  pause: (ms: number) => Promise<void>;
  /** Makes one attempt. It resolves as soon as the client may see something: no other attempt follows. */
  ask: (attempt: Attempt) => Promise<T>;
  /** Returns true where no other attempt is wanted, as the client has disconnected. */
  isOver: () => boolean;
  /** Called for each attempt, with its milliseconds until the answer began or the attempt failed. */
  ended?: (attempt: Attempt, ended: EndedAttempt) => void;
  /** Called at the end with targets that were passed over because they could not be asked. */
  skipped?: (targets: TargetRefusal[]) => void;
  /** Called for each attempt that failed by no fault of the client. */
  failed?: (attempt: Attempt, error: GatewayError) => void;
}

/**
 * Asks targets until one answers.
 * @throws {GatewayError} the error of the last attempt; where no target can be asked at all, `overloaded`, or
 * `exhausted` where all of them are at their limits, with the time after which one can be asked
 */
export function attemptTargets<T>(parts: AttemptOptions<T>): Promise<T> {
  return new TargetAttempts(parts).run();
}

/** Draws the time before a retry. Full jitter keeps requests that failed together from coming back together. */
export function backoffMs(retries: number, random: () => number): number {
  return random() * Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** Math.min(retries, 10));
}

/** A choice that may still be asked. */
interface Candidate {
  choice: Choice;
  /** True if the target was tried before. */
  isRepeat: boolean;
}

/** An attempt under way. */
interface Asking {
  candidate: Candidate;
  attempt: Attempt;
  /** By the monotonic clock. */
  begunAt: number;
}

/** The candidate to ask next. */
interface Found {
  candidate: Candidate;
  permit: Permit;
  /** True: the others have no retry budget and are not asked any more. */
  isLast?: boolean;
}

class TargetAttempts<T> {
  readonly #parts: AttemptOptions<T>;
  readonly #start: number;
  readonly #attempted: Choice[] = [];
  /** Candidates, the next first. */
  #pending: Candidate[] = [];
  /** Candidates to ask again where no other is left. */
  #repeats: Candidate[] = [];
  #attempts = 0;
  /** Attempts that were sent. A target that cannot take the request at all is not counted. */
  #counted = 0;
  #last: unknown;
  #waits = 0;
  #waitedMs = 0;

  constructor(parts: AttemptOptions<T>) {
    this.#parts = parts;
    this.#start = parts.monotonic();
    for (const choice of parts.choices) this.#pending.push({ choice, isRepeat: false });
  }

  async run(): Promise<T> {
    const { health, ask, ended } = this.#parts;
    while (true) {
      if (this.#pending[0]?.isRepeat === true) await this.#parts.pause(backoffMs(this.#waits++, this.#parts.random));
      const found = this.#find(this.#pending) ?? await this.#wait();
      if (found === undefined) return this.#giveUp();
      const { candidate, permit, isLast = false } = found;
      if (isLast) this.#pending = [];
      remove(this.#pending, candidate);
      remove(this.#repeats, candidate);
      const { model, target } = candidate.choice;
      if (this.#counted++ === 0) health.retryBudget(target).deposit();
      this.#attempted.push(candidate.choice);
      const attempt = { model, target, permit, number: ++this.#attempts };
      const begunAt = this.#parts.monotonic();
      try {
        const answer = await ask(attempt);
        health.report(permit, SUCCESS);
        ended?.(attempt, { outcome: "success", ms: this.#parts.monotonic() - begunAt });
        this.#reportSkipped(candidate.choice);
        return answer;
      } catch (error) {
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
   * Finds the first that may be asked now. The last attempt prefers targets that were not asked yet, those that are up
   * first.
   */
  #find(candidates: readonly Candidate[]): Found | undefined {
    const { health, key, maxAttempts } = this.#parts;
    if (this.#counted > 0 && this.#counted >= maxAttempts - 1) {
      const unasked = candidates.filter(({ isRepeat }) => !isRepeat);
      const found = this.#findAskable(unasked.filter(({ choice }) => health.isUp(choice.target, key))) ??
        this.#findAskable(unasked);
      if (found !== undefined) return found;
    }
    return this.#findAskable(candidates) ?? (this.#counted === 0 ? undefined : this.#findOpen(candidates));
  }

  /** Finds the first target that may be tried now. The last untried target needs no retry budget. */
  #findAskable(candidates: readonly Candidate[]): Found | undefined {
    const { health, key, monotonic } = this.#parts;
    for (const candidate of candidates) {
      const { choice: { target }, isRepeat } = candidate;
      // A target that was not asked yet and has not failed lately needs no budget.
      const needsBudget = this.#counted > 0 && (isRepeat || health.isFailing(target, key));
      if (needsBudget && !health.retryBudget(target).has(monotonic())) continue;
      const permit = this.#admit(candidate);
      if (permit === undefined) continue;
      if (needsBudget) health.retryBudget(target).take();
      return { candidate, permit };
    }
    for (const candidate of candidates.toReversed()) {
      const permit = candidate.isRepeat ? undefined : this.#admit(candidate);
      if (permit !== undefined) return { candidate, permit, isLast: true };
    }
    return undefined;
  }

  /**
   * A target whose breaker is open may have recovered: a request without any other target tries
   * it, for one token of the retry budget.
   */
  #findOpen(candidates: readonly Candidate[]): Found | undefined {
    for (const candidate of candidates) {
      const budget = this.#parts.health.retryBudget(candidate.choice.target);
      if (candidate.isRepeat || !budget.has(this.#parts.monotonic())) continue;
      const permit = this.#admit(candidate, true);
      if (permit === undefined) continue;
      budget.take();
      return { candidate, permit, isLast: true };
    }
    return undefined;
  }

  #admit({ choice: { model, target } }: Candidate, early = false): Permit | undefined {
    const { health, key } = this.#parts;
    // The first attempt begins with the request, so its time is known.
    const now = this.#attempts === 0 ? this.#start : undefined;
    const admission = health.acquirePermit({ model, target, key, early }, now);
    return admission.granted ? admission.permit : undefined;
  }

  /** Waits for a target that says when it can be asked again. `undefined` where no wait helps. */
  async #wait(): Promise<Found | undefined> {
    const { random, pause, deadlineMs } = this.#parts;
    while (this.#attempts > 0 && this.#waitedMs < MAX_WAIT_MS) {
      const waits = this.#repeats.flatMap((candidate) => this.#pauseMs(candidate) ?? []);
      const ms = Math.min(...waits) + Math.max(1, backoffMs(this.#waits++, random));
      // Without a candidate the wait is infinite.
      if (this.#elapsedMs() + ms > deadlineMs) return undefined;
      this.#waitedMs += ms;
      await pause(ms);
      const found = this.#find([...this.#pending, ...this.#repeats]);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Milliseconds until a candidate can be asked again; `undefined` where they are not known. */
  #pauseMs({ choice }: Candidate): number | undefined {
    const unavailability = this.#parts.health.unavailability(choice.target, this.#parts.key);
    if (unavailability === undefined) return 0;
    return unavailability.why === "cooling" ? unavailability.waitMs : undefined;
  }

  /** Handles a failure. @throws the error of the request, where no other attempt follows */
  #failed(error: unknown, { candidate, attempt, begunAt }: Asking): void {
    const { health, once = false, isOver, monotonic } = this.#parts;
    const { permit } = attempt;
    const failure = classifyFailure(error, { once, isTrial: permit.isTrial });
    const { type } = failure.outcome;
    // A client that has disconnected says nothing about the target.
    const isDone = isOver();
    health.report(permit, isDone ? { type: "neither" } : failure.outcome);
    const ms = monotonic() - begunAt;
    if (isDone) this.#parts.ended?.(attempt, { outcome: "client_disconnected", ms });
    if (isDone || !(error instanceof GatewayError)) throw error;
    const isReported = type !== "neither" || error.kind === "not_found" || error.fault === "access";
    const outcome = error.fault === "unfit" ? "unfit" : outcomeOfFailure(error, failure.outcome);
    if (outcome !== undefined) this.#parts.ended?.(attempt, { outcome, ms, error, isClients: !isReported });
    if (isReported) this.#parts.failed?.(attempt, error);
    // A target's failure is more informative than a target that could not express the request.
    if (error.fault !== "unfit" || this.#last === undefined) this.#last = error;
    this.#updateCandidates(candidate, { failure, error });
    if (!this.#mayGoOn(failure)) throw this.#last;
  }

  /** Updates the candidates after a failure. */
  #updateCandidates(candidate: Candidate, { failure, error }: { failure: FailureClass; error: GatewayError }): void {
    const { repeat, next } = failure;
    const { choice, isRepeat } = candidate;
    if (error.fault === "unfit") this.#counted--;
    if (next === "model") {
      const isOther = (other: Candidate) => other.choice.model !== choice.model;
      this.#pending = this.#pending.filter(isOther);
      this.#repeats = this.#repeats.filter(isOther);
    }
    if (isRepeat || repeat === "never") return;
    const repeated = { choice, isRepeat: true };
    if (repeat === "first" && this.#hasAttemptToSpare()) this.#pending.unshift(repeated);
    else this.#repeats.push(repeated);
  }

  /** Returns true if attempts are left for all untried targets and one more. */
  #hasAttemptToSpare(): boolean {
    const { health, key } = this.#parts;
    const unasked = this.#pending.filter(({ choice, isRepeat }) =>
      !isRepeat && health.unavailability(choice.target, key) === undefined
    );
    return this.#parts.maxAttempts - this.#counted > unasked.length;
  }

  #mayGoOn({ next, slow = false }: FailureClass): boolean {
    const { deadlineMs, maxAttempts } = this.#parts;
    const elapsed = this.#elapsedMs();
    return next !== "none" && this.#counted < maxAttempts && elapsed < (slow ? deadlineMs / 2 : deadlineMs) &&
      this.#pending.length + this.#repeats.length > 0;
  }

  #giveUp(): never {
    if (this.#last !== undefined) {
      this.#reportSkipped();
      throw this.#last;
    }
    throw unavailable(this.#parts);
  }

  /** Reports targets that were not asked. Behind a target that answered, nothing would have been asked. */
  #reportSkipped(answered?: Choice): void {
    const { choices, skipped } = this.#parts;
    if (choices.length === 1 || skipped === undefined) return;
    const models = answered === undefined ? [] : [...new Set(choices.map(({ model }) => model))];
    const isBefore = ({ model, target }: Choice) =>
      answered === undefined ||
      (model === answered.model
        ? target.priority <= answered.target.priority
        : models.indexOf(model) < models.indexOf(answered.model));
    const unasked = choices.filter((choice) => !this.#attempted.includes(choice) && isBefore(choice));
    const refusals = refusalsOf({ ...this.#parts, choices: unasked });
    if (refusals.length > 0) skipped(refusals.slice(0, NAMED_TARGETS));
  }

  #elapsedMs(): number {
    return this.#parts.monotonic() - this.#start;
  }
}

function remove(candidates: Candidate[], candidate: Candidate): void {
  const at = candidates.indexOf(candidate);
  if (at >= 0) candidates.splice(at, 1);
}

/** Returns the targets that cannot be asked now, with the reasons. */
function refusalsOf(
  { choices, health, key }: Pick<AttemptOptions<unknown>, "choices" | "health" | "key">,
): TargetRefusal[] {
  return choices.flatMap(({ model: { id: model }, target: { upstream }, target }): TargetRefusal[] => {
    const found = health.unavailability(target, key);
    return found === undefined ? [] : [{ upstream, model, why: found.why, wait_ms: Math.ceil(found.waitMs) }];
  });
}

/** Makes the error where no target can be asked, with the time after which one can. */
function unavailable(
  { choices, health, key }: Pick<AttemptOptions<unknown>, "choices" | "health" | "key">,
): GatewayError {
  const name = choices[0] === undefined ? "This model" : `Model "${choices[0].model.id}"`;
  const all = refusalsOf({ choices, health, key });
  if (all.length === 0) return new GatewayError("overloaded", `${name} has no upstream that could answer`);
  const options = {
    retryAfterMs: Math.min(...all.map(({ wait_ms }) => wait_ms)),
    refusal: { targets: all.slice(0, NAMED_TARGETS) },
  };
  return all.every(({ why }) => why === "cooling")
    ? new GatewayError("exhausted", `${name} is at the limit of all its upstreams`, options)
    : new GatewayError("overloaded", `${name} has no upstream available at the moment`, options);
}
