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
   * Requests that a node admits while Redis is unreachable: its share of every limit (`local`), or no request that
   * has limits (`closed`).
   */
  outage: "local" | "closed";
  /** Longest wait for a reply, after which Redis counts as unreachable, in milliseconds. */
  timeoutMs: number;
  /** Time after a crash of this process until its slots are freed, in milliseconds. */
  leaseMs: number;
  /**
   * Returns the milliseconds since the store last answered this node, `undefined` during an outage. Other nodes learn
   * them through Redis. Absent: there is no shared store.
   */
  msSinceStoreAnswered?: () => number | undefined;
  /**
   * Enters requests of crashed nodes into the ledger, each id once, and returns for each whether it is new. If this
   * node crashes meanwhile, another one does the same. Absent: the ledger is not shared.
   */
  enterLost?: (requests: readonly AdmittedRequest[]) => Promise<boolean[]>;
  log: Log;
}

/** Opens the configured limiter. Succeeds even if Redis is unreachable. */
export async function openLimiter(address: LimitsAddress, options: LimiterOptions): Promise<Limiter> {
  if (address.kind === "memory") return createMemoryLimiter(options);
  // With DEBUG set, the Redis client prints everything it sends to standard error, including its password.
  Deno.env.delete("DEBUG");
  // Imported lazily: most gateways never load it.
  const { openRedisLimiter } = await import("./redis_limiter.ts");
  return await openRedisLimiter(address.url, options);
}
