/** Enters requests in the ledger that are refused after their key is known and before their handler is called. */
import type { Caller } from "../access/caller.ts";
import { openMeter } from "../billing/meter.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import { endpointOf, type ObservedEndpoint, type RequestRecord } from "../observe/request_record.ts";
import { anthropicStatus } from "../protocols/error_bodies.ts";
import type { MeteredEndpoint } from "../store/ledger.ts";

/** A request and its caller. */
export interface RefusedRequest {
  gateway: Gateway;
  requestId: string;
  record: RequestRecord;
  caller: Caller;
}

const METERED: ReadonlySet<ObservedEndpoint> = new Set<MeteredEndpoint>([
  ...["chat", "responses", "messages", "images.generations", "images.edits", "embeddings", "rerank"] as const,
]);

/** Enters a refused request if its endpoint has ledger entries. @throws the given error */
export async function enterRefusal(
  error: unknown,
  { gateway, requestId, record, caller: { keyId, groupName } }: RefusedRequest,
): Promise<never> {
  const endpoint = endpointOf(record.route);
  if (!(error instanceof GatewayError) || !isMetered(endpoint)) throw error;
  const meter = openMeter(gateway, { id: requestId, keyId, group: groupName, endpoint });
  const status = endpoint === "messages" ? anthropicStatus(error) : error.status;
  await meter.fail(status, { code: error.kind === "forbidden" ? "permission" : "busy", ...error.refusal });
  throw error;
}

function isMetered(endpoint: ObservedEndpoint): endpoint is MeteredEndpoint {
  return METERED.has(endpoint);
}
