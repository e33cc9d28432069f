/** AttemptOptions, one after another, until one of them answers: which target is asked next, after what time, and for how long. */
import { GatewayError } from "../errors.ts";
import type { Health, Permit } from "./health.ts";
import type { Choice } from "./plan.ts";
import type { RetryBudget, RetryBudgets } from "./retry_budget.ts";
import { classifyFailure, type FailureClass } from "./classify_failure.ts";

/** Times between attempts, in milliseconds: by chance up to the first, doubled each time, up to the last. */
const BACKOFF_MS = 100;
const MOST_BACKOFF_MS = 2_000;
/** Longest time that one request waits between its attempts, all waits together. */
const MOST_WAIT_MS = 5_000;

const WELL = { type: "success" } as const;

/** One attemptTargets. */
export interface Attempt extends Choice {
  pass: Permit;
  /** From 1. */
  number: number;
}

/** What attempts are made with. */
export interface AttemptOptions<T> {
  /** The best first. */
  choices: readonly Choice[];
  /** The client key whose request it is. */
  key: string;
  health: Health;
  budgets: RetryBudgets;
  /** Most attempts. */
  most: number;
  /** Time within which the last one must begin, in milliseconds. */
  deadlineMs: number;
  /** True: what may have begun is not begun a second time. */
  once?: boolean;
  /** Milliseconds that only grow. */
  monotonic: () => number;
  /** Numbers from 0 up to, not including, 1. */
  random: () => number;
  /** Waits. @throws what the request was given up for, where that happens meanwhile */
  pause: (ms: number) => Promise<void>;
  /** Makes one attemptTargets. It resolves when there is something that the client may see: then there is no other attemptTargets. */
  ask: (attempt: Attempt) => Promise<T>;
  /** Asked after a failure: true where nobody wants another attemptTargets. */
  isOver: () => boolean;
  /** Told of each attemptTargets that failed by no fault of the client's. */
  failed?: (attempt: Attempt, error: GatewayError) => void;
}

/**
 * Asks targets until one answers.
 * @throws {GatewayError} the error of the last attemptTargets; where no target can be asked at all, `overloaded`, or `exhausted`
 * where they all are at their limits, with the time after which one of them can
 */
export function attemptTargets<T>(parts: AttemptOptions<T>): Promise<T> {
  return new Run(parts).run();
}

/** Time before an attempt: full jitter, so that those who failed together do not come back together. */
export function backoffMs(retries: number, random: () => number): number {
  return random() * Math.min(MOST_BACKOFF_MS, BACKOFF_MS * 2 ** Math.min(retries, 10));
}

/** A choice that may be asked, and what it has been through. */
interface Candidate {
  choice: Choice;
  /** Whether it was asked before. */
  asked: boolean;
}

/** An attemptTargets under way. */
interface Asking {
  candidate: Candidate;
  pass: Permit;
  number: number;
}

/** Whom to ask next. */
interface Found {
  candidate: Candidate;
  pass: Permit;
  /** True: the others were refused for want of budget, and are not asked any more. */
  isLast?: boolean;
}

class Run<T> {
  readonly #parts: AttemptOptions<T>;
  readonly #start: number;
  /** Those that can be asked, the next first. */
  #left: Candidate[];
  /** Those that can be asked again where nobody else is left. */
  #again: Candidate[] = [];
  #attempts = 0;
  /** AttemptOptions that did not count. */
  #unfit = 0;
  #last: unknown;
  #waits = 0;
  #waitedMs = 0;

  constructor(parts: AttemptOptions<T>) {
    this.#parts = parts;
    this.#start = parts.monotonic();
    this.#left = parts.choices.map((choice) => ({ choice, asked: false }));
  }

  async run(): Promise<T> {
    const { health, budgets, ask } = this.#parts;
    while (true) {
      if (this.#left[0]?.asked === true) await this.#parts.pause(backoffMs(this.#waits++, this.#parts.random));
      const found = this.#find(this.#left) ?? await this.#wait();
      if (found === undefined) return this.#giveUp();
      const { candidate, pass, isLast = false } = found;
      if (isLast) this.#left = [];
      remove(this.#left, candidate);
      remove(this.#again, candidate);
      const { model, target } = candidate.choice;
      if (this.#isFirst()) budgets.of(target).deposit();
      const number = ++this.#attempts;
      try {
        const answer = await ask({ model, target, pass, number });
        health.report(pass, WELL);
        return answer;
      } catch (error) {
        this.#failed(error, { candidate, pass, number });
      }
    }
  }

  /** Whether nothing was sent yet. */
  #isFirst(): boolean {
    return this.#attempts === this.#unfit;
  }

  /** The first that may be asked now. The last one that was not asked yet needs no budget. */
  #find(candidates: readonly Candidate[]): Found | undefined {
    for (const candidate of candidates) {
      const needsBudget = this.#needsBudget(candidate);
      if (needsBudget && !this.#budgetOf(candidate).has(this.#parts.monotonic())) continue;
      const pass = this.#admit(candidate);
      if (pass === undefined) continue;
      if (needsBudget) this.#budgetOf(candidate).take();
      return { candidate, pass };
    }
    for (const candidate of candidates.toReversed()) {
      const pass = candidate.asked ? undefined : this.#admit(candidate);
      if (pass !== undefined) return { candidate, pass, isLast: true };
    }
    return this.#isFirst() ? undefined : this.#findOpen(candidates);
  }

  /** A target whose breaker is open may have recovered: a request that no other target answers tries it, with a token. */
  #findOpen(candidates: readonly Candidate[]): Found | undefined {
    for (const candidate of candidates) {
      if (candidate.asked || !this.#budgetOf(candidate).has(this.#parts.monotonic())) continue;
      const pass = this.#admit(candidate, true);
      if (pass === undefined) continue;
      this.#budgetOf(candidate).take();
      return { candidate, pass, isLast: true };
    }
    return undefined;
  }

  #admit({ choice: { model, target } }: Candidate, early = false): Permit | undefined {
    const { health, key } = this.#parts;
    // Nothing was waited for before the first attemptTargets.
    const now = this.#attempts === 0 ? this.#start : undefined;
    const admission = health.acquirePermit({ model, target, key, early }, now);
    return admission.granted ? admission.permit : undefined;
  }

  /** A target that was not asked yet, and whose last answer was none of its failures, is asked without. */
  #needsBudget({ choice, asked }: Candidate): boolean {
    return !this.#isFirst() && (asked || this.#parts.health.isFailing(choice.target, this.#parts.key));
  }

  #budgetOf({ choice }: Candidate): RetryBudget {
    return this.#parts.budgets.of(choice.target);
  }

  /** Waits for one that says when it can be asked again; `undefined` where no wait helps. */
  async #wait(): Promise<Found | undefined> {
    const { random, pause, deadlineMs } = this.#parts;
    while (this.#attempts > 0 && this.#waitedMs < MOST_WAIT_MS) {
      const waits = this.#again.flatMap((candidate) => this.#toldMs(candidate) ?? []);
      const ms = Math.min(...waits) + Math.max(1, backoffMs(this.#waits++, random));
      // Of nobody to wait for, the least wait is infinite.
      if (this.#elapsedMs() + ms > deadlineMs) return undefined;
      this.#waitedMs += ms;
      await pause(ms);
      const found = this.#find([...this.#left, ...this.#again]);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Time after which a candidate can be asked again; `undefined` where that is too long, or not known. */
  #toldMs({ choice }: Candidate): number | undefined {
    const away = this.#parts.health.unavailability(choice.target, this.#parts.key);
    if (away === undefined) return 0;
    return away.why === "cooling" ? away.waitMs : undefined;
  }

  /** Learns from a failure. @throws what the request fails with, where nobody is asked any more */
  #failed(error: unknown, { candidate, pass, number }: Asking): void {
    const { health, once = false, isOver } = this.#parts;
    const { choice } = candidate;
    const verdict = classifyFailure(error, { once, isTrial: pass.isTrial });
    const { type } = verdict.outcome;
    // A client that has left says nothing about the target.
    const over = isOver();
    health.report(pass, over ? { type: "neither" } : verdict.outcome);
    if (over || !(error instanceof GatewayError)) throw error;
    const isWorthALine = type !== "neither" || error.kind === "not_found" || error.fault === "access";
    if (isWorthALine) this.#parts.failed?.({ ...choice, pass, number }, error);
    // That one could not be asked tells less than that another one failed.
    if (error.fault !== "unfit" || this.#last === undefined) this.#last = error;
    this.#judged(candidate, { verdict, error });
    if (!this.#mayGoOn(verdict)) throw this.#last;
  }

  /** Sees to who is left. */
  #judged(candidate: Candidate, { verdict, error }: { verdict: FailureClass; error: GatewayError }): void {
    const { again, next } = verdict;
    const { choice, asked } = candidate;
    if (error.fault === "unfit") this.#unfit++;
    if (next === "model") {
      const isOther = (other: Candidate) => other.choice.model !== choice.model;
      this.#left = this.#left.filter(isOther);
      this.#again = this.#again.filter(isOther);
    }
    if (asked || again === "never") return;
    const once = { choice, asked: true };
    if (again === "first") this.#left.unshift(once);
    else this.#again.push(once);
  }

  #mayGoOn({ next, slow = false }: FailureClass): boolean {
    const { most, deadlineMs } = this.#parts;
    const elapsed = this.#elapsedMs();
    return next !== "nobody" && this.#attempts - this.#unfit < most && elapsed < (slow ? deadlineMs / 2 : deadlineMs) &&
      this.#left.length + this.#again.length > 0;
  }

  #giveUp(): never {
    if (this.#last !== undefined) throw this.#last;
    throw unavailable(this.#parts);
  }

  #elapsedMs(): number {
    return this.#parts.monotonic() - this.#start;
  }
}

function remove(candidates: Candidate[], candidate: Candidate): void {
  const at = candidates.indexOf(candidate);
  if (at >= 0) candidates.splice(at, 1);
}

/** The error where no target can be asked: it tells when one of them can. */
function unavailable(
  { choices, health, key }: Pick<AttemptOptions<unknown>, "choices" | "health" | "key">,
): GatewayError {
  const name = choices[0] === undefined ? "This model" : `Model "${choices[0].model.id}"`;
  const aways = choices.flatMap(({ target }) => health.unavailability(target, key) ?? []);
  if (aways.length === 0) return new GatewayError("overloaded", `${name} has no upstream that could answer`);
  const retryAfterMs = Math.min(...aways.map(({ waitMs }) => waitMs));
  return aways.every(({ why }) => why === "cooling")
    ? new GatewayError("exhausted", `${name} is at the limit of its upstreams`, { retryAfterMs })
    : new GatewayError("overloaded", `${name} has no upstream that can be asked at this time`, { retryAfterMs });
}
