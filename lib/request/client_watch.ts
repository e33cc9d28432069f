/** Watches for a client that leaves before there is a response. */
import type { PhaseTimers, Timer } from "../phase_timers.ts";

/**
 * Time after which the runtime is asked whether the client of a whole answer is there, in milliseconds: to be told of it
 * costs 14 thousand instructions, and a fast answer is over by then. A client that left before is noticed then, too.
 */
const ASK_MS = 20;

/** Options of a client watch. */
export interface Watching {
  /** True: the client gets a stream, in which its leaving at any moment makes a difference. */
  stream: boolean;
  timers: PhaseTimers;
  /** Told once, when the client has left. */
  left: () => void;
}

/** The watch over the client of one request. */
export class ClientWatch {
  readonly #request: Request;
  readonly #timers: PhaseTimers;
  readonly #left: () => void;
  readonly #timer: Timer | undefined;
  #signal: AbortSignal | undefined;

  constructor(request: Request, { stream, timers, left }: Watching) {
    this.#request = request;
    this.#timers = timers;
    this.#left = left;
    if (stream) this.#ask();
    else this.#timer = timers.set(ASK_MS, () => this.#ask());
  }

  /** True once the client is known to have left. */
  get hasLeft(): boolean {
    return this.#signal?.aborted === true;
  }

  /** There is a response, whose body tells from here on, or there will be none. */
  stop(): void {
    if (this.#timer !== undefined) this.#timers.clear(this.#timer);
    this.#signal?.removeEventListener("abort", this.#left);
  }

  #ask(): void {
    this.#signal = this.#request.signal;
    if (this.#signal.aborted) this.#left();
    else this.#signal.addEventListener("abort", this.#left, { once: true });
  }
}
