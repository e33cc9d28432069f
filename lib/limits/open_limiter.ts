/** Finds the limiter that the configuration names. */
import type { LimitsAddress } from "../config/address.ts";
import type { Limiter, RunningRequest } from "./limiter.ts";
import { createMemoryLimiter } from "./memory_limiter.ts";

/** What a limiter is opened with. */
export interface LimiterOptions {
  /** Milliseconds of a clock that never goes back. */
  monotonic: () => number;
  /** While the shared counts are out of reach: this node's share of every limit, or nothing that has limits. */
  outage: "local" | "closed";
  /** How long the shared counts may take to answer before they count as out of reach, in milliseconds. */
  timeoutMs: number;
  /** How long the slots of this process outlive it, in milliseconds. */
  leaseMs: number;
  /**
   * Milliseconds since the store that nodes share answered this one last; `undefined` while it is out of reach. Other nodes
   * are told. Absent: there is no such store.
   */
  storeHeardMs?: () => number | undefined;
  /**
   * Enters requests into the ledger whose node was killed, each id once, and returns for each whether it is new. Another
   * node repeats it where this one is killed meanwhile. Absent: the ledger is not shared.
   */
  enterLost?: (requests: readonly RunningRequest[]) => Promise<boolean[]>;
  /** Told of what happens to them. */
  log: (line: { level: "info" | "warn" | "error"; event: string; [fact: string]: string | number | undefined }) => void;
}

/** Opens a limiter. One that is out of reach at the start is waited for as at any other time. */
export async function openLimiter(address: LimitsAddress, options: LimiterOptions): Promise<Limiter> {
  if (address.kind === "memory") return createMemoryLimiter(options);
  // The client of Redis would write all that it sends to standard error, its password included.
  Deno.env.delete("DEBUG");
  // Only who uses it pays for loading it.
  const { openRedisLimiter } = await import("./redis_limiter.ts");
  return await openRedisLimiter(address.url, options);
}
