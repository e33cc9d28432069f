/** Limits that several nodes count together, and what becomes of them while nobody counts. */
import type { Secret } from "../secret.ts";
import type { Limiter } from "./limiter.ts";
import type { LimiterOptions } from "./open.ts";

/** Opens a limiter that counts in Redis. */
export function openRedisLimiter(_url: Secret, _options: LimiterOptions): Promise<Limiter> {
  return Promise.reject(new Error("Cannot count limits in Redis yet"));
}
