/** `provider.require_parameters`: refuses a request that cannot be passed on completely. */
import type { UnsupportedParameters } from "../canonical/unsupported_parameters.ts";
import type { Prompt } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";

/**
 * Refuses a request with dropped parameters if its client requires all of them. Called after the prompt is adapted and
 * written.
 * @throws {GatewayError} `invalid`, naming every dropped parameter
 */
export function requireAllParameters({ provider }: Pick<Prompt, "provider">, { names }: UnsupportedParameters): void {
  const [first] = names;
  if (provider?.require_parameters !== true || first === undefined) return;
  throw new GatewayError(
    "invalid",
    `Cannot meet provider.require_parameters: this model does not support ${names.join(", ")}`,
    { param: first, rule: "provider.require_parameters: this model does not support every parameter" },
  );
}
