/**
 * The facts of a running request for log and metrics. They never contain a body, a key or text of a prompt or answer.
 */
import type { Entry } from "../store/ledger.ts";

/** Endpoints as named in metrics. Other routes are `other`. */
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

/** One request. Each step adds its facts. */
export interface RequestRecord {
  readonly id: string;
  /** A known method, or `other`. */
  readonly method: string;
  /** Arrival by a monotonic clock, in milliseconds. */
  readonly start: number;
  /** Pattern of the route, such as `/v1/models/[provider]`; empty for unknown paths. Never the path itself. */
  route: string;
  keyId?: string;
  keyName?: string;
  group?: string;
  /** Client address, if the operator has enabled it in the log. */
  address?: string;
  /** Public id of the requested model; `other` if it is not in the catalog. */
  asked?: string;
  /** Protocol of the upstream. */
  protocol?: string;
  /** Names of dropped members, as in `memberName`. */
  dropped: readonly string[];
  /** Kind of the error, and its code if it has one. */
  kind?: string;
  code?: string;
  /** The parameter named by the error, as in `memberName`. */
  param?: string;
  /** Bytes of the request body, decompressed. */
  bytesIn: number;
  /** Bytes of the response body passed on. */
  bytesOut: number;
  /** True for an event stream. */
  streamed: boolean;
  /** Status of the response; 0 until there is one. */
  status: number;
  /** Ledger entry; only for requests with a meter. */
  entry?: Entry;
  /** Trace context, for the observer. */
  trace?: unknown;
  /** Number of events to await before the request ends. */
  waits: number;
}

/** The endpoint of a route. */
export function endpointOf(route: string): ObservedEndpoint {
  const known = ENDPOINTS[route];
  if (known !== undefined) return known;
  if (route.startsWith("/admin/")) return "admin";
  return /^(?:\/v1|\/anthropic\/v1)\/models(?:\/|$)/.test(route) ? "models" : "other";
}

/** Returns whether monitoring polls a route. */
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
