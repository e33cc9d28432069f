/** Decides which routes each listener serves, and checks the access table. */
import { type Access, accessKey, type AccessTable, isAdminPath, isOperatorCredential } from "../access/access_table.ts";
import type { Config } from "../config.ts";
import type { Gateway } from "../gateway.ts";
import { METHODS, type Route } from "./router.ts";

/**
 * The part of the routes that a listener serves. `public`: all but the admin side. `admin`: the admin side and health.
 * `both`: everything. `local`: all but the admin API; its console opens only with sign-in links.
 */
export type Surface = "public" | "admin" | "both" | "local";

/** Address of a listener, and the routes that it serves. */
export interface Listener {
  hostname: string;
  port: number;
  /** True if other processes listen on the same port (SO_REUSEPORT): the system distributes the connections. */
  reusePort: boolean;
  surface: Surface;
}

/**
 * Returns the listeners of a configuration, the one for clients first. Without an admin key the admin API is not
 * served.
 * @param gateway its `localAdmin` is set if there is a console without an admin key
 */
export function listenersOf(
  { listen, admin }: Pick<Config, "listen" | "admin">,
  { localAdmin }: Pick<Gateway, "localAdmin"> = {},
): [Listener, ...Listener[]] {
  const { hostname, port, reuse_port: reusePort } = listen;
  const clients = { hostname, port, reusePort };
  if (admin === undefined) return [{ ...clients, surface: localAdmin === undefined ? "public" : "local" }];
  if (admin.listen === undefined) return [{ ...clients, surface: "both" }];
  return [{ ...clients, surface: "public" }, { ...admin.listen, reusePort: false, surface: "admin" }];
}

/** Returns the routes of a surface, each with only the methods of the surface, so that `Allow` names no others. */
export function routesOn(
  surface: Surface,
  { routes, access }: { routes: readonly Route[]; access: AccessTable },
): Route[] {
  return routes.flatMap((route) => {
    const methods = METHODS.filter((method) => isOn(surface, access[accessKey(method, route)]));
    const handlers = Object.fromEntries(methods.flatMap((method) => {
      const handler = route.handlers[method];
      return handler === undefined ? [] : [[method, handler]];
    }));
    return Object.keys(handlers).length === 0 ? [] : [{ path: route.path, handlers }];
  });
}

function isOn(surface: Surface, row: Access | undefined): boolean {
  if (row === undefined) return false;
  if (surface === "both" || row.everywhere === true) return true;
  if (surface === "local") return row.credential !== "admin";
  return isOperatorCredential(row.credential) === (surface === "admin");
}

/**
 * Checks the access table against the routes: each route has a row, each row has a route, and exactly the routes under
 * `/admin` require credentials of operators.
 * @throws {RangeError} otherwise
 */
export function checkAccess(routes: readonly Route[], access: AccessTable): void {
  const keys = routes.flatMap((route) =>
    METHODS.filter((method) => route.handlers[method] !== undefined).map((method) => accessKey(method, route))
  );
  for (const key of keys) {
    if (!Object.hasOwn(access, key)) throw new RangeError(`Cannot serve "${key}": the access table has no row for it`);
  }
  for (const [key, row] of Object.entries(access)) {
    if (!keys.includes(key)) throw new RangeError(`Cannot use the access row "${key}": there is no such route`);
    const isForOperators = isOperatorCredential(row.credential);
    if (isForOperators !== isAdminPath(key.slice(key.indexOf(" ") + 1))) {
      throw new RangeError(
        `Cannot use the access row "${key}": operators' credentials are for /admin, and /admin for them`,
      );
    }
    const needsNoEndpoint = row.credential === "none" || isForOperators || row.credential === "metrics";
    if (!needsNoEndpoint && row.endpoint === undefined) {
      throw new RangeError(`Cannot use the access row "${key}": it names no endpoint`);
    }
  }
}
