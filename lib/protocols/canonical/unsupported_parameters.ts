/** Collects the names of parameters that the target does not support. */
import { GatewayError } from "../../errors.ts";
import type { Prompt } from "./types.ts";
import { clientParameterName, type NamedRequest } from "./client_parameter_names.ts";

const NONE: readonly string[] = [];

/**
 * Names of the parameters that were not passed on, in the client's own terms (`top_k`, `logprobs`), for the
 * `x-sluice-dropped` response header.
 */
export class UnsupportedParameters {
  /** Absent while there are none, as for most requests. */
  #names: Set<string> | undefined;
  /** Names as they were added. A search for the client's name reads the body, so each name is looked up only once. */
  #added: Set<string> | undefined;
  readonly #client: NamedRequest | undefined;

  /**
   * @param client the request whose names are used; absent: the added names are the client's own
   * @param names the client's own names of parameters that were dropped before
   */
  constructor(client?: NamedRequest, names: readonly string[] = NONE) {
    this.#client = client;
    if (names.length > 0) this.#names = new Set(names);
  }

  /** Adds a parameter that was not passed on, under the client's own name for it. */
  add(name: string): void {
    if (this.#added?.has(name) === true) return;
    (this.#added ??= new Set()).add(name);
    (this.#names ??= new Set()).add(this.nameOf(name));
  }

  /** Returns the client's own name for a parameter. */
  nameOf(name: string): string {
    return this.#client === undefined ? name : clientParameterName(name, this.#client);
  }

  /** The names in the order of their addition. */
  get names(): readonly string[] {
    return this.#names === undefined ? NONE : [...this.#names];
  }

  /**
   * Refuses a request whose client requires that all of its parameters are passed on (`provider.require_parameters`).
   * To be called after the prompt is adapted and written.
   * @throws {GatewayError} `invalid`, naming every parameter that was not passed on
   */
  refuseIfRequired({ provider }: Pick<Prompt, "provider">): void {
    const [first] = this.names;
    if (provider?.require_parameters !== true || first === undefined) return;
    throw new GatewayError(
      "invalid",
      `Cannot satisfy provider.require_parameters: this model does not support ${this.names.join(", ")}`,
      { param: first, rule: "provider.require_parameters: this model does not support every parameter" },
    );
  }
}
