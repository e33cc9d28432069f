/** Finds the served route of a URL. */
import { type Access, accessKey, type AccessTable, isAdminPath } from "../access/access_table.ts";
import { allowedMethods, createRouter, type Handler, METHODS, type Route } from "./router.ts";
import { GatewayError } from "../errors.ts";
import type { HeaderValues } from "./head.ts";

/** URLs whose routes are cached. */
const MOST_MATCHES = 256;

/** The handler of one method, and the row of the access table that guards it. */
export interface RouteHandler {
  handler: Handler;
  row: Access | undefined;
}

/** A route as it is served. */
export interface ServedRoute {
  readonly path: string;
  /** True for the admin side and metrics: their answers are never read from a web page. */
  readonly isForOperators: boolean;
  /** The value of `Allow`. */
  readonly allowed: readonly string[];
  /** By method; `HEAD` as `GET`. */
  readonly methods: ReadonlyMap<string, RouteHandler>;
}

/** The route of a URL under one `Host`. */
export interface RouteMatch {
  /** Shape of the errors of its path. */
  readonly errors: ErrorShape;
  readonly route: ServedRoute;
  readonly params: Readonly<Record<string, string>>;
}

/** Finds routes. */
export interface RouteMatcher {
  /** A match that was found recently. */
  known(request: Addressed): RouteMatch | undefined;
  /** `undefined`: there is no route. @throws {GatewayError} as `readTarget` */
  find(request: Addressed): RouteMatch | undefined;
}

/** Finds the given routes, with their rows of the access table. @throws {RangeError} as `createRouter` */
export function createRouteMatcher(routes: readonly Route[], access: AccessTable): RouteMatcher {
  const route = createRouter(routes);
  const served = new Map(routes.map((route) => [route, servedOf(route, access)]));
  /** By URL, those without a parameter: to read a target costs 2 µs. Both tell it, the URL and `Host`, which is in it. */
  const latest = new Map<string, RouteMatch & { host: string | null }>();
  return {
    known(request) {
      const known = latest.get(request.url);
      if (known?.host !== request.headers.get("host") || known.route.path === GOOGLE_OR_OPENAI) return undefined;
      return known;
    },
    find(request) {
      const { segments } = readTarget(request);
      const isAlias = isGoogles(request);
      const match = route(isAlias ? [GOOGLE_BASE, ...segments.slice(1)] : withModels(segments));
      const found = match && served.get(match.route);
      if (match === undefined || found === undefined) return undefined;
      const host = request.headers.get("host");
      const known = { errors: errorShapeOf(request), route: found, params: match.params, host };
      if (isAlias || Object.keys(match.params).length > 0) return known;
      if (latest.size >= MOST_MATCHES) latest.clear();
      latest.set(request.url, known);
      return known;
    },
  };
}

function servedOf(route: Route, access: AccessTable): ServedRoute {
  const methods = new Map<string, RouteHandler>();
  for (const method of METHODS) {
    const handler = route.handlers[method];
    if (handler === undefined) continue;
    const answers = { handler, row: access[accessKey(method, route)] };
    methods.set(method, answers);
    if (method === "GET") methods.set("HEAD", answers);
  }
  const { path } = route;
  return { path, isForOperators: isAdminPath(path) || path === "/metrics", allowed: allowedMethods(route), methods };
}

/** The parts of a request that hold its target. */
export interface Addressed {
  readonly url: string;
  readonly headers: HeaderValues;
}

/** The target of a request. */
export interface RequestTarget {
  /** Path as sent, without the query. */
  path: string;
  /** The path's segments, each percent-decoded once. A decoded slash is data. */
  segments: string[];
  /** Query without the question mark; empty where there is none. */
  query: string;
}

const HOST = /^(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/;

/** Unreserved characters and sub-delimiters of RFC 3986, the slash, and the percent sign of an escape. */
const PATH = /^\/[A-Za-z0-9._~:@/%!$&'()*+,;=-]*$/;

/**
 * Reads the target. The server builds `request.url` by putting the scheme and `Host` before the target, so a `Host`
 * with a slash in it would move the path. Here `Host` is checked first and then cut off; nothing parses the whole.
 * HTTP/2 has no `Host`: its authority is in the URL alone.
 * @throws {GatewayError} `invalid`, or `not_found` for a path that would mean another after normalization
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
  // Nothing has a name with it, and Postgres cannot take it in a text.
  if (target.includes("%00")) {
    throw new GatewayError("invalid", "Cannot read the request target: it has a NUL character");
  }
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  if (!PATH.test(path)) {
    throw new GatewayError("invalid", "Cannot read the path: it has a character that must be percent-encoded");
  }
  const segments = path.slice(1).split("/").map(decodeSegment);
  // A proxy that normalizes such a path would authorize a different path than the one served here.
  if (path.includes("//") || segments.some((segment) => segment === "." || segment === "..")) {
    throw new GatewayError("not_found", "Cannot find this path: empty, . and .. segments are not followed");
  }
  return { path, segments, query: mark < 0 ? "" : target.slice(mark + 1) };
}

/** Base of Google's paths here, and a path that both vendors have. */
const GOOGLE_BASE = "v1beta";
const GOOGLE_OR_OPENAI = "/v1/models";
/** A method at the end of a model's path. */
const GOOGLE_METHOD = /:(?:generateContent|streamGenerateContent|countTokens)$/;

/**
 * Returns true for a request of a Google client under `/v1/models`: the version of Google's API that newer SDKs ask for
 * has the path of OpenAI's list of models. Its key, or the method of a model, tells them apart.
 */
function isGoogles(request: Addressed): boolean {
  const target = targetOf(request);
  if (!/^\/v1\/models(?![^/?#])/.test(target)) return false;
  return request.headers.get("x-goog-api-key") !== null ||
    /^[^?]*:(?:generateContent|streamGenerateContent|countTokens)(?:\?|$)/.test(target);
}

/** `@ai-sdk/google` (2 to 4) leaves out `models/` before a model id with a slash. Returns the segments with it. */
function withModels(segments: readonly string[]): readonly string[] {
  const [base, collection, ...others] = segments;
  if (base !== GOOGLE_BASE || collection === undefined || collection === "models") return segments;
  return GOOGLE_METHOD.test(segments.at(-1) ?? "") ? [base, "models", collection, ...others] : segments;
}

/** Vendor whose errors a client reads. */
export type ErrorShape = "openai" | "anthropic" | "google";

/**
 * Returns Anthropic's shape under `/anthropic`, Google's under `/v1beta`. It accepts targets that cannot be parsed, so that
 * their errors have the right shape too. Only the shape of an error may depend on it.
 */
export function errorShapeOf(request: Addressed): ErrorShape {
  const base = /^\/(anthropic|v1beta)(?![^/?#])/.exec(targetOf(request))?.[1];
  if (base === "anthropic") return "anthropic";
  return base === GOOGLE_BASE || isGoogles(request) ? "google" : "openai";
}

/** The target of a request, which may not be readable. */
function targetOf(request: Addressed): string {
  const cut = cutOrigin(request.url, request.headers.get("host") ?? "");
  // The server puts its own address into a URL whose `Host` is empty.
  return cut?.startsWith("/") === true
    ? cut
    : request.url.slice(Math.max(0, request.url.indexOf("/", request.url.indexOf("://") + 3)));
}

/** Returns `Host`, or the host of the URL for a request without the header, such as one of HTTP/2. */
function hostOf({ url, headers }: Addressed): string {
  return headers.get("host") ?? /^https?:\/\/([^/]*)/i.exec(url)?.[1] ?? "";
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
