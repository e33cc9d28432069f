/**
 * Runs a step whenever `wake` is called. Only one run is in progress at a time; calls during a run cause one more run
 * after it.
 */
export class Worker {
  readonly #step: () => Promise<void>;
  readonly #failed: (error: unknown) => void;
  #running: Promise<void> | undefined;
  #isWoken = false;
  #isOver = false;
  #isFailing = false;

  /** @param failed called with an error, unless the previous run failed as well */
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
