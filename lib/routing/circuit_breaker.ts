/** A circuit breaker: closed, open for a time, then half-open, when one request at a time tries the target. */

/** Time after which a trial without an outcome makes room for the next, in milliseconds. */
const TRIAL_MS = 30_000;
/** A breaker stays open for up to this many times its first time. */
const MOST_STEPS = 3;

/** Identifies a request that passed a breaker. */
export interface BreakerTicket {
  /** Number of changes of the breaker by then. */
  readonly epoch: number;
  /** Number of the trial; absent: the breaker was closed. */
  readonly trial?: number;
}

/** Times that a breaker stays open. */
export interface BreakerTimes {
  /** The first time, in milliseconds. */
  openMs: number;
  /** A breaker that opens within this time after it closed opens for longer, in milliseconds. */
  restMs: number;
}

/** A circuit breaker, closed at first. Times are milliseconds of a monotonic clock. */
export class CircuitBreaker {
  #epoch = 0;
  /** The ticket of every request while it is closed. */
  #closed: BreakerTicket = { epoch: 0 };
  #isOpen = false;
  #until = 0;
  #closedAt = -Infinity;
  /** Number of times it has opened without a long enough rest. */
  #step = 0;
  #trials = 0;
  /** The trial under way. */
  #trial: { number: number; since: number } | undefined;
  /** Client key of the last trial since it was closed, and when that trial ended. */
  #lastKey: string | undefined;
  #endedAt = 0;
  /** True if the breaker has refused another key since that trial began. */
  #othersWait = false;
  /** Time that the next trial is reserved for other keys, in milliseconds. */
  #turnMs = 0;
  /** Result of the last probe since it opened. */
  #probe: "up" | "down" | undefined;

  /** Open or half-open. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Open or half-open, and no trial is under way. */
  get awaitsTrial(): boolean {
    return this.#isOpen && this.#trial === undefined;
  }

  /** End of its open time. */
  get until(): number {
    return this.#until;
  }

  /** Number of its changes. */
  get epoch(): number {
    return this.#epoch;
  }

  /** True if the upstream has failed the last probe since the breaker opened. */
  get isDown(): boolean {
    return this.#probe === "down";
  }

  /**
   * Time until a request of a client key may pass; 0: now. The key of the last trial comes after other waiting keys.
   * @param early whether it may pass before the open time is over
   */
  waitMs(now: number, key: string, early = false): number {
    if (!this.#isOpen) return 0;
    const ended = this.#trial === undefined ? this.#endedAt : this.#trial.since + TRIAL_MS;
    const from = Math.max(early ? 0 : this.#until, ended);
    return Math.max(0, from + (this.#othersWait && key === this.#lastKey ? this.#turnMs : 0) - now);
  }

  /**
   * Returns true if a request may pass although other targets are up: the breaker is closed, or its upstream has
   * answered a probe.
   */
  mayLead(now: number, key: string): boolean {
    return !this.#isOpen || (this.#probe === "up" && this.waitMs(now, key) === 0);
  }

  /** Lets a request pass: only where `waitMs` is 0. */
  enter(now: number, key: string): BreakerTicket {
    if (!this.#isOpen) return this.#closed;
    this.#trial = { number: ++this.#trials, since: now };
    this.#lastKey = key;
    this.#othersWait = false;
    return { epoch: this.#epoch, trial: this.#trials };
  }

  /** Notes that this breaker alone has refused a request of a key. */
  refused(key: string): void {
    if (this.#lastKey !== undefined && key !== this.#lastKey) this.#othersWait = true;
  }

  /** Returns true if the breaker has not changed since the request passed it. */
  isCurrent({ epoch }: BreakerTicket): boolean {
    return epoch === this.#epoch;
  }

  /** Returns true if the request is the current trial: its failure opens the breaker again. */
  isTrial(ticket: BreakerTicket): boolean {
    return this.isCurrent(ticket) && ticket.trial !== undefined && ticket.trial === this.#trial?.number;
  }

  /** Returns true if the request was a trial: its success counts, however late. */
  wasTrial(ticket: BreakerTicket): boolean {
    return this.isCurrent(ticket) && ticket.trial !== undefined;
  }

  /** Allows another trial after one without a result. */
  giveBack(ticket: BreakerTicket, now: number): void {
    if (this.isTrial(ticket)) this.#endTrial(now);
  }

  /** Opens it, and returns for how long. @param jitter varies a time at random */
  open(now: number, { openMs, restMs }: BreakerTimes, jitter: (ms: number) => number): number {
    const soon = this.#isOpen || now - this.#closedAt < restMs;
    this.#step = soon ? Math.min(MOST_STEPS, this.#step + 1) : 1;
    const forMs = jitter(openMs * this.#step);
    this.#epoch++;
    this.#isOpen = true;
    this.#probe = undefined;
    this.#until = now + forMs;
    this.#turnMs = openMs;
    this.#endTrial(now);
    return forMs;
  }

  close(now: number): void {
    this.#closed = { epoch: ++this.#epoch };
    this.#isOpen = false;
    this.#closedAt = now;
    this.#endTrial(now);
    this.#lastKey = undefined;
    this.#othersWait = false;
  }

  /** Notes the result of a probe of the upstream. */
  probed(found: "up" | "down"): void {
    this.#probe = found;
  }

  #endTrial(now: number): void {
    if (this.#trial === undefined) return;
    this.#endedAt = Math.min(now, this.#trial.since + TRIAL_MS);
    this.#trial = undefined;
  }
}
