/** Requests under way by client, so that one client does not take all there is. */
import { GatewayError } from "../errors.ts";

/** When to try again, in milliseconds: nobody knows when one of the others ends. */
const RETRY_MS = 1_000;

/** Requests under way, by client. */
export interface Crowd {
  /** Counts one more; what it returns counts it no longer. @throws {GatewayError} `limited` where `most` run already */
  enter(client: string, most: number): () => void;
}

/** Starts with nobody. Only clients with requests under way are remembered. */
export function createCrowd(): Crowd {
  const running = new Map<string, number>();
  return {
    enter(client, most) {
      const count = running.get(client) ?? 0;
      if (count >= most) {
        const message = `Cannot take this request: ${most} with this API key from this address are under way`;
        throw new GatewayError("limited", message, { retryAfterMs: RETRY_MS });
      }
      running.set(client, count + 1);
      let left = false;
      return () => {
        if (left) return;
        left = true;
        const rest = (running.get(client) ?? 1) - 1;
        if (rest > 0) running.set(client, rest);
        else running.delete(client);
      };
    },
  };
}
