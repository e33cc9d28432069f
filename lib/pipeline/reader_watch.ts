/** Whether a client takes what there is for it: one that does not must not hold on to what others wait for. */
import { GatewayError } from "../errors.ts";

/** A watch over the reader of one stream. */
export interface ReaderWatch {
  /** The client asks for more. */
  asks(): void;
  /** There is something for it. */
  given(): void;
  /** Ends the watch. Safe at any time, more than once. */
  stop(): void;
}

/**
 * Starts with something to read.
 * @param unreadMs how long the client may leave it, in milliseconds; it is noticed within twice that time
 * @param gaveUp called once when that was too long, with what the client is told, should it ever read on
 */
export function watchReader(unreadMs: number, gaveUp: (error: GatewayError) => void): ReaderWatch {
  let asking = false;
  let isOld = false;
  const timer = setInterval(() => {
    if (asking) return;
    if (isOld) {
      clearInterval(timer);
      const message = `Cannot go on with this answer: it was left unread for more than ${unreadMs / 1000} s`;
      gaveUp(new GatewayError("too_slow", message));
    }
    isOld = true;
  }, unreadMs);
  return {
    asks() {
      asking = true;
    },
    given() {
      asking = false;
      isOld = false;
    },
    stop: () => clearInterval(timer),
  };
}
