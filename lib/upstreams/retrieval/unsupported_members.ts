/** Finds members of a request that an upstream does not support. */
import { isObject } from "../../json/mod.ts";
import type { RetrievalCall, RetrievalRequest } from "../../retrieval/types.ts";
import { unfitError } from "../prepare_attempt.ts";

/**
 * Adds the members of the body that the upstream does not support to `dropped`.
 * @throws {GatewayError} `invalid` with fault `unfit`, if the client requires all parameters
 */
export function dropUnsupportedMembers(
  { request: { body }, dropped }: RetrievalCall<RetrievalRequest>,
  supported: ReadonlySet<string>,
): void {
  for (const [name, value] of Object.entries(body.value)) {
    if (value !== null && !supported.has(name)) dropped.add(name);
  }
  const { provider } = body.value;
  try {
    dropped.refuseIfRequired(isObject(provider) ? { provider } : {});
  } catch (error) {
    throw unfitError(error);
  }
}
