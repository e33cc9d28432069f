/** The error of a stream whose client does not read. */
import { GatewayError } from "../errors.ts";

/** @param unreadMs how long the client may leave unread what there is, in milliseconds */
export function unreadError(unreadMs: number): GatewayError {
  const message = `Cannot go on with this answer: it was left unread for more than ${unreadMs / 1000} s`;
  return new GatewayError("too_slow", message);
}
