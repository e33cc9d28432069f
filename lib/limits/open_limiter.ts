/** Opens the limiter that the configuration names. */
import type { LimitsAddress } from "../config/address.ts";
import type { AdmittedRequest, Limiter } from "./limiter.ts";
import { createMemoryLimiter } from "./memory_limiter.ts";

/** Options of every limiter. */
export interface LimiterOptions {
  /** Milliseconds of a monotonic clock. */
  monotonic: () => number;
  /** While Redis is out of reach a node admits its share of every limit, or no request that has limits. */
  outage: "local" | "closed";
  /** Time in which Redis must answer before it counts as out of reach, in milliseconds. */
  timeoutMs: number;
  /** Time that the slots of this process outlive it, in milliseconds. */
  leaseMs: number;
  /**
   * Returns the milliseconds since the store that nodes share answered this one, `undefined` while it is out of reach. Other
   * nodes learn it from Redis. Absent: there is no shared store.
   */
  storeHeardMs?: () => number | undefined;
  /**
   * Enters requests into the ledger whose node was killed, each id once, and returns for each whether it is new. Another
   * node repeats it where this one is killed meanwhile. Absent: the ledger is not shared.
   */
  enterLost?: (requests: readonly AdmittedRequest[]) => Promise<boolean[]>;
  log: (line: { level: "info" | "warn" | "error"; event: string; [fact: string]: string | number | undefined }) => void;
}

/** Opens a limiter, also where Redis is out of reach. */
export async function openLimiter(address: LimitsAddress, options: LimiterOptions): Promise<Limiter> {
  if (address.kind === "memory") return createMemoryLimiter(options);
  // With DEBUG set, the client of Redis writes all that it sends to standard error, its password included.
  Deno.env.delete("DEBUG");
  // Imported here, as most gateways never load it.
  const { openRedisLimiter } = await import("./redis_limiter.ts");
  return await openRedisLimiter(address.url, options);
}
