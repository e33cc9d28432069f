import { GatewayError } from "../../errors.ts";

/**
 * Accepted versions. The Python SDK and the npm SDK before 1.0 send 2023-06-01, later npm SDKs 2026-10-21. Both are
 * treated alike: the newer one only forbids sampling parameters that many models accept.
 */
const VERSIONS: readonly string[] = ["2023-06-01", "2026-10-21"];

/**
 * Checks the `anthropic-version` header.
 * @param header its value; `null` if it is missing
 * @throws {GatewayError} `invalid`, for a missing or unknown version
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
