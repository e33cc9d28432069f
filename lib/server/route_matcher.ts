/** Finds the route of a request's URL, and reads its path safely. */
import { type Access, accessKey, type AccessTable, isAdminPath } from "../access/access_table.ts";
import { meantEndpoint } from "./absent_endpoints.ts";
import { allowedMethods, createRouter, type Handler, type Match, METHODS, type Route } from "./router.ts";
import { GatewayError } from "../errors.ts";
import { type Addressed, hostOf } from "./head.ts";

/** The handler of one method, and the row of the access table that guards it. */
export interface RouteHandler {
  handler: Handler;
  row: Access | undefined;
}

/** A route with its handlers and their rows of the access table. */
export interface ServedRoute {
  readonly path: string;
  /** True for the admin side and metrics. Web pages of other origins may not read their answers. */
  readonly isForOperators: boolean;
  /** Methods for the header `Allow`. */
  readonly allowed: readonly string[];
  /** Handlers by method. `HEAD` has the handler of `GET`. */
  readonly methods: ReadonlyMap<string, RouteHandler>;
}

/** Finds the match of a request; undefined if there is no route. @throws {GatewayError} as `readTarget` */
export type RouteMatcher = (request: Addressed) => Match<ServedRoute> | undefined;

/** Creates a matcher of the given routes. @throws {RangeError} as `createRouter` */
export function createRouteMatcher(routes: readonly Route[], access: AccessTable): RouteMatcher {
  const findRoute = createRouter(routes.map((route) => servedOf(route, access)));
  return (request) => {
    const { path, segments } = readTarget(request);
    const isGoogles = isGoogleRequest(decodePath(path), request);
    return findRoute(isGoogles ? [GOOGLE_BASE, ...segments.slice(1)] : withModels(segments));
  };
}

function servedOf(route: Route, access: AccessTable): ServedRoute {
  const methods = new Map<string, RouteHandler>();
  for (const method of METHODS) {
    const handler = route.handlers[method];
    if (handler === undefined) continue;
    const routeHandler = { handler, row: access[accessKey(method, route)] };
    methods.set(method, routeHandler);
    if (method === "GET") methods.set("HEAD", routeHandler);
  }
  const { path } = route;
  return { path, isForOperators: isAdminPath(path) || path === "/metrics", allowed: allowedMethods(route), methods };
}

/** The target of a request. */
export interface RequestTarget {
  /** Path as sent, without the query. */
  path: string;
  /** The path's segments, each percent-decoded once. A decoded slash is part of its segment. */
  segments: string[];
  /** Query without the question mark; empty if there is none. */
  query: string;
}

/** Names of containers and of nginx's upstreams, which it sends by default, may have underscores. */
const HOST = /^(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

/** Unreserved characters and sub-delimiters of RFC 3986, the slash, and the percent sign of an escape. */
const PATH = /^\/[A-Za-z0-9._~:@/%!$&'()*+,;=-]*$/;

/**
 * Reads the target. The server builds `request.url` from the scheme, `Host` and the target, so a `Host` with a slash in
 * it would change the path. Therefore the host is checked first and then cut off, and nothing parses the whole URL.
 * @throws {GatewayError} `invalid`, or `not_found` for a path that would be another path after normalization
 */
export function readTarget(request: Addressed): RequestTarget {
  const host = hostOf(request);
  if (!HOST.test(host)) {
    throw new GatewayError(
      "invalid",
      "Cannot read the Host header: expected exactly one host name, with or without a port",
    );
  }
  const target = cutOrigin(request.url, host);
  if (target === undefined) {
    throw new GatewayError("invalid", "Cannot read the request target: expected a path on the host that Host names");
  }
  // No name contains a NUL character, and Postgres cannot store it in a text.
  if (target.includes("%00")) {
    throw new GatewayError("invalid", "Cannot read the request target: it has a NUL character");
  }
  const [path = ""] = target.split("?", 1);
  if (!PATH.test(path)) {
    throw new GatewayError("invalid", "Cannot read the path: it has a character that must be percent-encoded");
  }
  const segments = path.slice(1).split("/").map(decodeSegment);
  // A proxy that normalizes such a path would authorize a different path than the one served here.
  if (path.includes("//") || segments.includes(".") || segments.includes("..")) {
    const meant = meantEndpoint(path);
    const question = meant === undefined ? "" : `; did you mean ${meant}?`;
    throw new GatewayError("not_found", `Cannot find this path: empty, . and .. segments are not followed${question}`);
  }
  return { path, segments, query: target.slice(path.length + 1) };
}

/** First segment of Google's paths. */
const GOOGLE_BASE = "v1beta";
/** Matches a method of Google's API at the end of a model's path. */
const GOOGLE_METHOD = /:(?:generateContent|streamGenerateContent|countTokens)$/;

/** Decodes a whole path, for comparisons; returns a path that cannot be decoded as it is. */
function decodePath(path: string): string {
  if (!path.includes("%")) return path;
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/**
 * Returns true for a request of a Google client under `/v1/models`. Newer SDKs use a version of Google's API that has
 * the same path as OpenAI's list of models. Google's key header, or the method of a model, distinguishes them.
 */
function isGoogleRequest(path: string, { headers }: Addressed): boolean {
  if (!/^\/v1\/models(?![^/#])/.test(path)) return false;
  return headers.get("x-goog-api-key") !== null || GOOGLE_METHOD.test(path);
}

/** Inserts `models/` before a model id with a slash, where `@ai-sdk/google` (2 to 4) leaves it out. */
function withModels(segments: readonly string[]): readonly string[] {
  const [base, collection, ...others] = segments;
  if (base !== GOOGLE_BASE || collection === undefined || collection === "models") return segments;
  return GOOGLE_METHOD.test(segments.at(-1) ?? "") ? [base, "models", collection, ...others] : segments;
}

/** The vendor whose error format a client expects. */
export type ErrorShape = "openai" | "anthropic" | "google";

/**
 * Returns the error format of a request's path. It also works for targets that cannot be parsed, so that their errors
 * have the right format, too. Nothing but the format of an error may depend on it.
 */
export function errorShapeOf(request: Addressed): ErrorShape {
  const path = decodePath(/^https?:\/\/[^/?]*([^?]*)/i.exec(request.url)?.[1] ?? "");
  const base = /^\/(anthropic|v1beta)(?![^/#])/.exec(path)?.[1];
  if (base === "anthropic") return "anthropic";
  return base === GOOGLE_BASE || isGoogleRequest(path, request) ? "google" : "openai";
}

/** Returns the rest of the URL after `http://<host>`, or undefined if the URL does not begin with it. */
function cutOrigin(url: string, host: string): string | undefined {
  const scheme = /^https?:\/\//i.exec(url)?.[0];
  if (scheme === undefined) return undefined;
  const end = scheme.length + host.length;
  if (url.slice(scheme.length, end).toLowerCase() !== host.toLowerCase()) return undefined;
  return url.slice(end);
}

function decodeSegment(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch (cause) {
    throw new GatewayError("invalid", "Cannot read the path: it has a percent escape that is not UTF-8", { cause });
  }
}
