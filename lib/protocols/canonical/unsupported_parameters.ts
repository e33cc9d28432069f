import { clientParameterName, type NamedRequest } from "./client_parameter_names.ts";

const NONE: readonly string[] = [];

/**
 * Names of the parameters that were not passed on, in the client's own words (`top_k`, `logprobs`). They go into the
 * `x-sluice-dropped` response header, so that nothing is lost in silence.
 */
export class UnsupportedParameters {
  /** Absent while there are none, as for most requests. */
  #names: Set<string> | undefined;
  readonly #client: NamedRequest | undefined;

  /** @param client the request whose words count; absent: names are in the client's words already */
  constructor(client?: NamedRequest) {
    this.#client = client;
  }

  /** Notes that a parameter of the client's was not passed on. Of several names for it, the client's own is kept. */
  add(name: string): void {
    (this.#names ??= new Set()).add(this.#client === undefined ? name : clientParameterName(name, this.#client));
  }

  /** The names, in the order they were first noted. */
  get names(): readonly string[] {
    return this.#names === undefined ? NONE : [...this.#names];
  }
}
