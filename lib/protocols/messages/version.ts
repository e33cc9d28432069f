/** The version header of the messages protocol. */
import { GatewayError } from "../../errors.ts";

/**
 * Versions we answer to. 2023-06-01 is what the Python SDK and the npm SDK before 1.0 send, 2026-10-21 what the npm SDK
 * sends since. Both get the same treatment: the newer only forbids sampling parameters that many of our models take.
 */
const VERSIONS: readonly string[] = ["2023-06-01", "2026-10-21"];

/**
 * Checks the `anthropic-version` header.
 * @param header its value; `null` when it is missing
 * @throws {GatewayError} `invalid`, when it is missing or of a version we do not know
 */
export function checkVersion(header: string | null): void {
  const accepted = VERSIONS.join(" or ");
  if (header === null) {
    throw new GatewayError("invalid", `Missing required header anthropic-version: expected ${accepted}`);
  }
  if (!VERSIONS.includes(header)) {
    const shown = JSON.stringify(header.slice(0, 64));
    throw new GatewayError("invalid", `Cannot use header anthropic-version ${shown}: expected ${accepted}`);
  }
}
