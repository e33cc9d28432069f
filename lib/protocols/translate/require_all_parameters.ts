/** `provider.require_parameters`: what cannot be passed on whole is not passed on at all. */
import type { UnsupportedParameters } from "../canonical/unsupported_parameters.ts";
import type { Prompt } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";

/**
 * Refuses a request of which something was dropped, where its client wants all or nothing. It is called when the prompt
 * has been adapted and written.
 * @throws {GatewayError} `invalid`, naming everything that was dropped
 */
export function requireAllParameters({ provider }: Prompt, { names }: UnsupportedParameters): void {
  const [first] = names;
  if (provider?.require_parameters !== true || first === undefined) return;
  throw new GatewayError(
    "invalid",
    `Cannot pass on everything, as provider.require_parameters wants: ${names.join(", ")}`,
    { param: first },
  );
}
