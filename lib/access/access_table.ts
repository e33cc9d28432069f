/** The table of the credential and permission that every route requires. Routes that it does not list are refused. */
import { type Protocol, PROTOCOLS } from "../protocols/canonical/types.ts";

/**
 * The header or parameter in which a client sends its API key. `bearer`: in `Authorization: Bearer`; other headers are
 * ignored. `api_key`: in `x-api-key`, or as `bearer`. `google_key`: in `x-goog-api-key`, or as `key` in the query, or
 * as `bearer`.
 */
export type Credential = "bearer" | "api_key" | "google_key";

/** Credentials of the admin side. */
export type OperatorCredential = "admin" | "session" | "sign_in";

/** Endpoints that a group's permissions name. The text endpoints have the names of their protocols. */
export const ENDPOINTS = ["models", ...PROTOCOLS, "images", "embeddings", "rerank", "openapi", "usage"] as const;

/** An endpoint that a group's permissions name. */
export type Endpoint = typeof ENDPOINTS[number];

/** Requirements of one method of one route. */
export interface Access {
  /**
   * `none`: public. `admin`: the admin key as a bearer token; reading also works with the viewer key. `session`: a
   * session of the console; reading also works with a viewer's. `sign_in`: public on the admin side, for the pages that
   * begin and end sessions. `metrics`: as `admin`, unless the operator has made metrics public; without an admin key,
   * callers on this machine only.
   */
  readonly credential: "none" | "metrics" | OperatorCredential | Credential;
  /** Endpoint that the group must permit; present exactly if the credential is a client's. */
  readonly endpoint?: Endpoint;
  /** Protocol that the group must permit as well; absent: none. */
  readonly protocol?: Protocol;
  /** True if the request opens a WebSocket. */
  readonly websocket?: true;
  /** True if the admin listener, if there is one, serves the route as well. */
  readonly everywhere?: true;
}

/** Requirements by method and path, such as `GET /v1/models/[provider]`. */
export type AccessTable = Readonly<Record<string, Access>>;

const PUBLIC: Access = { credential: "none" };
const HEALTH: Access = { credential: "none", everywhere: true };
const ADMIN: Access = { credential: "admin" };
const SESSION: Access = { credential: "session" };
const SIGN_IN: Access = { credential: "sign_in" };
const MODELS: Access = { credential: "bearer", endpoint: "models" };
const NATIVE_MODELS: Access = { credential: "api_key", endpoint: "models", protocol: "messages" };
const RESPONSES: Access = { credential: "bearer", endpoint: "responses", protocol: "responses" };
const IMAGES: Access = { credential: "bearer", endpoint: "images" };
const MESSAGES: Access = { credential: "api_key", endpoint: "messages", protocol: "messages" };
const GEMINI_MODELS: Access = { credential: "google_key", endpoint: "models", protocol: "gemini" };
const GEMINI: Access = { credential: "google_key", endpoint: "gemini", protocol: "gemini" };

/** The access table of the gateway. */
export const ACCESS: AccessTable = {
  "GET /healthz": HEALTH,
  "GET /readyz": HEALTH,
  "GET /metrics": { credential: "metrics", everywhere: true },
  "GET /openapi.json": { credential: "bearer", endpoint: "openapi" },
  "GET /v1/usage": { credential: "bearer", endpoint: "usage" },
  "GET /v1/models": MODELS,
  "GET /v1/models/[provider]": MODELS,
  "GET /v1/models/[provider]/[model_id]": MODELS,
  "POST /v1/chat/completions": { credential: "bearer", endpoint: "chat", protocol: "chat" },
  "GET /v1/responses": { ...RESPONSES, websocket: true },
  "POST /v1/responses": RESPONSES,
  "POST /v1/responses/compact": RESPONSES,
  "POST /v1/responses/input_tokens": RESPONSES,
  "POST /v1/images/generations": IMAGES,
  "POST /v1/images/edits": IMAGES,
  "POST /v1/embeddings": { credential: "bearer", endpoint: "embeddings" },
  "POST /v1/rerank": { credential: "bearer", endpoint: "rerank" },
  "GET /anthropic/api/hello": PUBLIC,
  "GET /anthropic/v1/models": NATIVE_MODELS,
  "GET /anthropic/v1/models/[provider]": NATIVE_MODELS,
  "GET /anthropic/v1/models/[provider]/[model_id]": NATIVE_MODELS,
  "POST /anthropic/v1/messages": MESSAGES,
  "POST /anthropic/v1/messages/count_tokens": MESSAGES,
  "GET /v1beta/models": GEMINI_MODELS,
  "GET /v1beta/models/[provider]": GEMINI_MODELS,
  "GET /v1beta/models/[provider]/[model_id]": GEMINI_MODELS,
  "POST /v1beta/models/[provider]": GEMINI,
  "POST /v1beta/models/[provider]/[model_id]": GEMINI,
  "GET /admin/console": SESSION,
  "GET /admin/console/sign-in": SIGN_IN,
  "POST /admin/console/sign-in": SIGN_IN,
  "POST /admin/console/sign-out": SIGN_IN,
  "GET /admin/console/assets/[name]": SIGN_IN,
  "GET /admin/console/requests": SESSION,
  "GET /admin/console/requests.csv": SESSION,
  "GET /admin/console/requests/stream": SESSION,
  "GET /admin/console/requests/[request_id]": SESSION,
  "GET /admin/console/keys": SESSION,
  "POST /admin/console/keys": SESSION,
  "GET /admin/console/keys/[key]": SESSION,
  "POST /admin/console/keys/[key]": SESSION,
  "GET /admin/console/budgets": SESSION,
  "GET /admin/console/groups": SESSION,
  "GET /admin/console/groups/[group]": SESSION,
  "GET /admin/console/models": SESSION,
  "POST /admin/console/models": SESSION,
  "GET /admin/console/usage": SESSION,
  "POST /admin/console/usage": SESSION,
  "GET /admin/console/playground": SESSION,
  "POST /admin/console/playground": SESSION,
  "GET /admin/console/connect": SESSION,
  "GET /admin/console/node": SESSION,
  "GET /admin/console/changes": SESSION,
  "GET /admin/console/configuration": SESSION,
  "POST /admin/console/configuration": SESSION,
  "GET /admin/v1/keys": ADMIN,
  "POST /admin/v1/keys": ADMIN,
  "GET /admin/v1/keys/[key]": ADMIN,
  "PATCH /admin/v1/keys/[key]": ADMIN,
  "DELETE /admin/v1/keys/[key]": ADMIN,
  "POST /admin/v1/keys/[key]/rotate": ADMIN,
  "GET /admin/v1/health": ADMIN,
  "GET /admin/v1/budgets": ADMIN,
  "GET /admin/v1/changes": ADMIN,
  "GET /admin/v1/requests": ADMIN,
  "GET /admin/v1/requests/stream": ADMIN,
  "GET /admin/v1/usage": ADMIN,
  "GET /admin/v1/usage/[request_id]": ADMIN,
  "POST /admin/v1/audit": ADMIN,
  "GET /admin/v1/config": ADMIN,
  "POST /admin/v1/reload": ADMIN,
  "GET /admin/v1/openapi.json": ADMIN,
};

/** Returns whether a credential is one of the admin side. */
export function isOperatorCredential(credential: Access["credential"]): credential is OperatorCredential {
  return credential === "admin" || credential === "session" || credential === "sign_in";
}

/** Returns the key in the access table for a method of a route. */
export function accessKey(method: string, { path }: { path: string }): string {
  return `${method} ${path}`;
}

/** Returns whether a path belongs to the admin side. */
export function isAdminPath(path: string): boolean {
  return path.startsWith("/admin/");
}
