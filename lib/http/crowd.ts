/** Requests under way by the address they came from, so that one client does not take all there is. */
import { neighbourhood } from "../access/networks.ts";
import { GatewayError } from "../errors.ts";

/** When to try again, in milliseconds: nobody knows when one of the others ends. */
const RETRY_MS = 1_000;

/** Requests under way, by address. */
export interface Crowd {
  /** Counts one more; what it returns counts it no longer. @throws {GatewayError} `limited` where `most` run already */
  enter(address: string, most: number): (() => void) | Promise<() => void>;
}

/** The requests of one isolate: it knows at once. */
export interface OwnCrowd extends Crowd {
  enter(address: string, most: number): () => void;
}

/** Starts with nobody. Only addresses with requests under way are remembered. */
export function createCrowd(): OwnCrowd {
  const running = new Map<string, number>();
  return {
    enter(address, most) {
      const place = neighbourhood(address);
      const count = running.get(place) ?? 0;
      if (count >= most) {
        throw new GatewayError("limited", `Cannot take this request: ${most} from this address are under way`, {
          retryAfterMs: RETRY_MS,
        });
      }
      running.set(place, count + 1);
      let left = false;
      return () => {
        if (left) return;
        left = true;
        const rest = (running.get(place) ?? 1) - 1;
        if (rest > 0) running.set(place, rest);
        else running.delete(place);
      };
    },
  };
}
