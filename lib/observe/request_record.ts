/** The facts of a running request, for log and metrics. It never holds a body, a key or text of a prompt or an answer. */
import type { Entry } from "../store/ledger.ts";

/** Endpoints as metrics name them. Routes that no endpoint belongs to are `other`. */
export type ObservedEndpoint =
  | Entry["endpoint"]
  | "count_tokens"
  | "models"
  | "openapi"
  | "usage"
  | "health"
  | "metrics"
  | "admin"
  | "other";

/** One request. Every step adds the facts that it finds out. */
export interface RequestRecord {
  readonly id: string;
  /** A known method, or `other`. */
  readonly method: string;
  /** Time of arrival by a monotonic clock, in milliseconds. */
  readonly start: number;
  /** The pattern of its route, such as `/v1/models/[provider]`; empty where there is none. Never the path itself. */
  route: string;
  keyId?: string;
  keyName?: string;
  group?: string;
  /** Address of the client, if the operator has enabled it in the log. */
  address?: string;
  /** Public id of the requested model; `other` if it is not in the catalog. */
  asked?: string;
  /** The protocol spoken to the upstream. */
  protocol?: string;
  /** Names of members that were not passed on, as the gateway's own words. */
  dropped: readonly string[];
  /** Kind of the error, and its code if it has one. */
  kind?: string;
  code?: string;
  /** The parameter that the error names, as in `memberName`. */
  param?: string;
  /** Bytes of the request's body, inflated. */
  bytesIn: number;
  /** Bytes of the answer's body that were handed on. */
  bytesOut: number;
  /** True for an answer as a stream of events. */
  streamed: boolean;
  /** Status of the response; 0 until there is one. */
  status: number;
  /** Its ledger entry; only of requests under a meter. */
  entry?: Entry;
  /** The context of its trace; for the observer. */
  trace?: unknown;
  /** Number of events that must happen before the request is over. */
  waits: number;
}

/** The endpoint of a route. */
export function endpointOf(route: string): ObservedEndpoint {
  const known = ENDPOINTS[route];
  if (known !== undefined) return known;
  if (route.startsWith("/admin/")) return "admin";
  return /^(?:\/v1|\/anthropic\/v1)\/models(?:\/|$)/.test(route) ? "models" : "other";
}

/** True for routes that monitoring polls. */
export function isProbe(route: string): boolean {
  const endpoint = endpointOf(route);
  return endpoint === "health" || endpoint === "metrics";
}

const ENDPOINTS: Readonly<Record<string, ObservedEndpoint>> = {
  "/v1/chat/completions": "chat",
  "/v1/responses": "responses",
  "/anthropic/v1/messages": "messages",
  "/v1/images/generations": "images.generations",
  "/v1/images/edits": "images.edits",
  "/v1/embeddings": "embeddings",
  "/v1/rerank": "rerank",
  "/anthropic/v1/messages/count_tokens": "count_tokens",
  "/openapi.json": "openapi",
  "/v1/usage": "usage",
  "/healthz": "health",
  "/readyz": "health",
  "/anthropic/api/hello": "health",
  "/metrics": "metrics",
};
