/** A gate that is shut for a time and then lets one request through at a time, until one of them comes back well. */

/** Time after which a trial that nobody heard of again makes room for another, in milliseconds. */
const TRIAL_MS = 30_000;

/** What a request that passed a gate was given. */
export interface Ticket {
  /** How often the gate had moved by then. */
  readonly epoch: number;
  /** Which trial the request is; absent: the gate was open. */
  readonly trial?: number;
}

/** A gate. It begins open. Times are milliseconds of a clock that only grows. */
export class Gate {
  #epoch = 0;
  /** The ticket of all that pass while it is open. */
  #open: Ticket = { epoch: 0 };
  #isShut = false;
  #until = 0;
  #trials = 0;
  /** The trial under way. */
  #trial: { number: number; since: number } | undefined;

  get isShut(): boolean {
    return this.#isShut;
  }

  /** When the time is over for which it was shut. */
  get until(): number {
    return this.#until;
  }

  /** Time until a request may pass; 0: now. */
  waitMs(now: number): number {
    if (!this.#isShut) return 0;
    const from = this.#trial === undefined ? this.#until : Math.max(this.#until, this.#trial.since + TRIAL_MS);
    return Math.max(0, from - now);
  }

  /** Lets a request pass: only where `waitMs` is 0. */
  enter(now: number): Ticket {
    if (!this.#isShut) return this.#open;
    this.#trial = { number: ++this.#trials, since: now };
    return { epoch: this.#epoch, trial: this.#trials };
  }

  /** Whether the gate has not moved since the request passed it. */
  isCurrent({ epoch }: Ticket): boolean {
    return epoch === this.#epoch;
  }

  /** Whether the request is a trial of now: its bad end is one of the gate's, while that of an overdue one no longer is. */
  isTrial(ticket: Ticket): boolean {
    return this.isCurrent(ticket) && ticket.trial !== undefined && ticket.trial === this.#trial?.number;
  }

  /** Whether the request is a trial at all: a good end counts, however late. */
  wasTrial(ticket: Ticket): boolean {
    return this.isCurrent(ticket) && ticket.trial !== undefined;
  }

  /** A trial that decided nothing makes room for the next. */
  giveBack(ticket: Ticket): void {
    if (this.isTrial(ticket)) this.#trial = undefined;
  }

  shut(until: number): void {
    this.#epoch++;
    this.#isShut = true;
    this.#until = until;
    this.#trial = undefined;
  }

  open(): void {
    this.#open = { epoch: ++this.#epoch };
    this.#isShut = false;
    this.#trial = undefined;
  }
}
