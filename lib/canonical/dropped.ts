/**
 * Names of the parameters that were not passed on, in the client's own words (`top_k`, `logprobs`). They go into the
 * `x-sluice-dropped` response header, so that nothing is lost in silence.
 */
export class Dropped {
  readonly #names = new Set<string>();

  /** Notes that a parameter of the client's was not passed on. */
  add(name: string): void {
    this.#names.add(name);
  }

  /** The names, in the order they were first noted. */
  get names(): readonly string[] {
    return [...this.#names];
  }
}
