/** Counts the concurrent requests of each client, so that one does not take all there is. */
import { GatewayError } from "../errors.ts";

/** When to try again, in milliseconds: the end of the others is not known. */
const RETRY_MS = 1_000;

/** Concurrent requests by client. */
export interface ClientConcurrency {
  /** Counts a request, until the function that it returns is called. @throws {GatewayError} `limited` where `most` are counted already */
  begin(client: string, most: number): () => void;
}

/** Only clients with concurrent requests are kept. */
export function createClientConcurrency(): ClientConcurrency {
  const running = new Map<string, number>();
  return {
    begin(client, most) {
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
