/** Decides whether the client, by reading slowly, caused the failure of a stream. */
import { GatewayError } from "../errors.ts";

/**
 * A timeout counts against the client instead of the target if the client delayed the answer for this share of its
 * time limit and at least this many milliseconds. A broken connection counts against the client if the client took
 * longer than the upstream, because many servers close a connection whose data is not read.
 */
const CLIENT_DELAY_SHARE = 0.1;
const CLIENT_DELAY_MS = 1_000;

/** Times of a stream, in milliseconds. */
export interface StreamTimes {
  /** Time limit of the target for the whole answer. */
  totalMs: number;
  /** Total time that data waited for the client. */
  heldUpMs: number;
  /** Total time that the client waited for data. */
  waitedMs: number;
}

/** Returns the error, or a `too_slow` error if the client delayed an answer that timed out or broke off. */
export function blameClient(error: GatewayError, { totalMs, heldUpMs, waitedMs }: StreamTimes): GatewayError {
  const { kind, fault, vendor } = error;
  if (heldUpMs < CLIENT_DELAY_MS) return error;
  if (fault === "overtime") {
    if (heldUpMs < totalMs * CLIENT_DELAY_SHARE) return error;
    return tooSlow(`receive it within ${totalMs / 1000} s`);
  }
  const isBroken = kind === "upstream" && fault === undefined && vendor === undefined;
  return isBroken && heldUpMs >= waitedMs ? tooSlow("receive it before it broke off") : error;
}

function tooSlow(failure: string): GatewayError {
  return new GatewayError("too_slow", `Cannot finish this answer: the client read too slowly to ${failure}`);
}
