/** Runs a step whenever it is woken: one run at a time, and one more for all wakes during a run. */
export class Worker {
  readonly #step: () => Promise<void>;
  readonly #failed: (error: unknown) => void;
  #running: Promise<void> | undefined;
  #isWoken = false;
  #isOver = false;
  #isFailing = false;

  /** @param failed called with the first error since the last successful run */
  constructor(step: () => Promise<void>, failed: (error: unknown) => void) {
    this.#step = step;
    this.#failed = failed;
  }

  /** Runs the step now, or after the current run. */
  wake(): void {
    this.#isWoken = true;
    this.#running ??= this.#run();
  }

  /** Prevents further runs. Resolves when the current one has ended. */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#isWoken && !this.#isOver) {
      this.#isWoken = false;
      try {
        await this.#step();
        this.#isFailing = false;
      } catch (error) {
        if (!this.#isFailing && !this.#isOver) this.#failed(error);
        this.#isFailing = true;
      }
    }
    this.#running = undefined;
  }
}
