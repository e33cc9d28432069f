/** Opens the responses that nodes share, if the configuration names a Redis. */
import type { Log } from "../log_events.ts";
import type { LimitsAddress } from "../config/address.ts";
import type { SharedResponses } from "./recall.ts";

/** Opens the responses in Redis, even if it is unreachable. Returns `undefined` if no Redis is configured. */
export async function openSharedResponses(
  address: LimitsAddress,
  log: Log,
): Promise<SharedResponses | undefined> {
  if (address.kind === "memory") return undefined;
  // Imported lazily: most gateways never load it.
  const { RedisResponses } = await import("./redis_responses.ts");
  const responses = new RedisResponses(address.url, log);
  await responses.connect();
  return responses;
}
