const NONE: readonly string[] = [];

/**
 * Names of the parameters that were not passed on, in the client's own words (`top_k`, `logprobs`). They go into the
 * `x-sluice-dropped` response header, so that nothing is lost in silence.
 */
export class Dropped {
  /** Absent while there are none, as for most requests. */
  #names: Set<string> | undefined;

  /** Notes that a parameter of the client's was not passed on. */
  add(name: string): void {
    (this.#names ??= new Set()).add(name);
  }

  /** The names, in the order they were first noted. */
  get names(): readonly string[] {
    return this.#names === undefined ? NONE : [...this.#names];
  }
}
