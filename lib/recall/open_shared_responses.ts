/** Opens the responses that nodes share. */
import type { LimitsAddress } from "../config/address.ts";
import type { SharedResponses } from "./recall.ts";

/** Options of shared responses. */
export interface SharedResponsesOptions {
  /** Time in which Redis must answer, in milliseconds. */
  timeoutMs: number;
  log: (line: { level: "warn"; event: string; cause: string }) => void;
}

/** Opens the responses in Redis, also where Redis is unreachable; `undefined` where there is no Redis. */
export async function openSharedResponses(
  address: LimitsAddress,
  options: SharedResponsesOptions,
): Promise<SharedResponses | undefined> {
  if (address.kind === "memory") return undefined;
  // Imported here, as most gateways never load it.
  const { RedisResponses } = await import("./redis_responses.ts");
  const responses = new RedisResponses(address.url, options);
  await responses.connect();
  return responses;
}
