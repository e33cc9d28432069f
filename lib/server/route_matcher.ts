/** Finds the served route of a URL. */
import type { Access, AccessTable } from "../access/access_table.ts";
import { allowedMethods, createRouter, type Handler, METHODS, type Route } from "./router.ts";
import { accessKey } from "./surface.ts";
import { type Addressed, isAnthropicPath, readTarget } from "./target.ts";

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
  /** The value of `Allow`. */
  readonly allowed: readonly string[];
  /** By method; `HEAD` as `GET`. */
  readonly methods: ReadonlyMap<string, RouteHandler>;
}

/** The route of a URL under one `Host`. */
export interface RouteMatch {
  /** True if the path is under `/anthropic`. */
  readonly native: boolean;
  readonly route: ServedRoute;
  readonly params: Readonly<Record<string, string>>;
}

/** Finds routes. */
export interface RouteMatcher {
  /** A known that was found of late. */
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
      return known?.host === request.headers.get("host") ? known : undefined;
    },
    find(request) {
      const match = route(readTarget(request).segments);
      const found = match && served.get(match.route);
      if (match === undefined || found === undefined) return undefined;
      const host = request.headers.get("host");
      const known = { native: isAnthropicPath(request), route: found, params: match.params, host };
      if (Object.keys(match.params).length > 0) return known;
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
  return { path: route.path, allowed: allowedMethods(route), methods };
}
