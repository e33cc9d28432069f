/** What is at a URL: the route of its target, as it is served. */
import type { Access, AccessTable } from "../access/access_table.ts";
import { allowedMethods, createRouter, type Handler, METHODS, type Route } from "./router.ts";
import { accessKey } from "./surface.ts";
import { type Addressed, isAnthropicPath, readTarget } from "./target.ts";

/** URLs whose places are remembered. */
const MOST_PLACES = 256;

/** A route as it is served. */
export interface Served {
  readonly path: string;
  /** The value of `Allow`. */
  readonly allowed: readonly string[];
  /** By method; `HEAD` as `GET`. */
  readonly methods: ReadonlyMap<string, { handler: Handler; row: Access | undefined }>;
}

/** What is at a URL, under the name that `Host` has there. */
export interface Place {
  /** Whether it lies under `/anthropic`. */
  readonly native: boolean;
  readonly served: Served;
  readonly params: Readonly<Record<string, string>>;
}

/** All places. */
export interface Places {
  /** A place that was found of late. */
  known(request: Addressed): Place | undefined;
  /** `undefined`: nothing is there. @throws {GatewayError} as `readTarget` */
  find(request: Addressed): Place | undefined;
}

/** Those of routes, with their rows of the access table. @throws {RangeError} as `createRouter` */
export function createPlaces(routes: readonly Route[], access: AccessTable): Places {
  const route = createRouter(routes);
  const served = new Map(routes.map((route) => [route, servedOf(route, access)]));
  /** By URL, those without a parameter: to read a target costs 2 µs. Both tell it, the URL and `Host`, which is in it. */
  const latest = new Map<string, Place & { host: string | null }>();
  return {
    known(request) {
      const place = latest.get(request.url);
      return place?.host === request.headers.get("host") ? place : undefined;
    },
    find(request) {
      const match = route(readTarget(request).segments);
      const found = match && served.get(match.route);
      if (match === undefined || found === undefined) return undefined;
      const host = request.headers.get("host");
      const place = { native: isAnthropicPath(request), served: found, params: match.params, host };
      if (Object.keys(match.params).length > 0) return place;
      if (latest.size >= MOST_PLACES) latest.clear();
      latest.set(request.url, place);
      return place;
    },
  };
}

function servedOf(route: Route, access: AccessTable): Served {
  const methods = new Map<string, { handler: Handler; row: Access | undefined }>();
  for (const method of METHODS) {
    const handler = route.handlers[method];
    if (handler === undefined) continue;
    const answers = { handler, row: access[accessKey(method, route)] };
    methods.set(method, answers);
    if (method === "GET") methods.set("HEAD", answers);
  }
  return { path: route.path, allowed: allowedMethods(route), methods };
}
