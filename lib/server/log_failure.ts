/** The log line of a request that failed. */
import type { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import { describeCause } from "./cause.ts";

/** Logs what went wrong underneath, by the id of the request. */
export function logFailure(
  error: GatewayError,
  { gateway, requestId }: { gateway: Pick<Gateway, "log">; requestId: string },
): void {
  gateway.log({
    level: error.kind === "internal" ? "error" : "warn",
    event: "request_failed",
    request_id: requestId,
    kind: error.kind,
    ...describeCause(error.cause),
  });
}
