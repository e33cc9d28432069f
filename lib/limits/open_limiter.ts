/** Opens the configured limiter. */
import type { Log } from "../log_events.ts";
import type { LimitsAddress } from "../config/address.ts";
import type { AdmittedRequest, Limiter } from "./limiter.ts";
import { createMemoryLimiter } from "./memory_limiter.ts";

/** Options of every limiter. */
export interface LimiterOptions {
  /** Monotonic clock in milliseconds. */
  monotonic: () => number;
  /**
   * While Redis is unreachable, a node admits its share of every limit (`local`), or no request that has limits
   * (`closed`).
   */
  outage: "local" | "closed";
  /** Timeout after which Redis counts as unreachable, in milliseconds. */
  timeoutMs: number;
  /** Time for which this process's slots survive its crash, in milliseconds. */
  leaseMs: number;
  /**
   * Milliseconds since the store answered this node, `undefined` during an outage; shared with other nodes through
   * Redis. Absent: there is no shared store.
   */
  msSinceStoreAnswered?: () => number | undefined;
  /**
   * Enters requests of crashed nodes into the ledger, each id once, and returns whether each is new. Another node
   * repeats it if this one crashes meanwhile. Absent: the ledger is not shared.
   */
  enterLost?: (requests: readonly AdmittedRequest[]) => Promise<boolean[]>;
  log: Log;
}

/** Opens a limiter, even if Redis is unreachable. */
export async function openLimiter(address: LimitsAddress, options: LimiterOptions): Promise<Limiter> {
  if (address.kind === "memory") return createMemoryLimiter(options);
  // With DEBUG set, the Redis client prints everything it sends to standard error, including its password.
  Deno.env.delete("DEBUG");
  // Imported lazily: most gateways never load it.
  const { openRedisLimiter } = await import("./redis_limiter.ts");
  return await openRedisLimiter(address.url, options);
}
