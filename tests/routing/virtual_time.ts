/** A clock that jumps from one timer to the next, so that minutes take milliseconds. */

/** Turns of the microtask queue after which everything that follows from one event has happened. */
const TURNS = 40;

interface Due {
  at: number;
  resolve: () => void;
}

/** A clock and its events. */
export class VirtualTime {
  now = 0;
  readonly #due: Due[] = [];

  /** Resolves after a time. */
  readonly pause = (ms: number): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const due = { at: this.now + ms, resolve };
    const later = this.#due.findIndex(({ at }) => at > due.at);
    this.#due.splice(later === -1 ? this.#due.length : later, 0, due);
    return promise;
  };

  /** Calls a function after a time. Returns a function that cancels the call. */
  readonly later = (run: () => void, ms: number): () => void => {
    let cancelled = false;
    void this.pause(ms).then(() => cancelled || run());
    return () => cancelled = true;
  };

  /** Runs until no timer is left, or until a time. */
  async run(until = Infinity): Promise<void> {
    await settle();
    for (let due = this.#due[0]; due !== undefined && due.at <= until; due = this.#due[0]) {
      this.#due.shift();
      this.now = due.at;
      due.resolve();
      await settle();
    }
    if (until !== Infinity) this.now = until;
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await null;
}
