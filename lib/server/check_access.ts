/** Checks that routes and the access table belong together. */
import { type Access, type AccessTable, isOperatorCredential } from "../access/access_table.ts";
import { METHODS, type Route } from "./router.ts";
import { accessKey } from "./surface.ts";

/** Nothing is reachable by oversight, no row outlives its route, and the admin key opens the admin side alone. */
export function checkAccess(routes: readonly Route[], access: AccessTable): void {
  const keys = routes.flatMap((route) =>
    METHODS.filter((method) => route.handlers[method] !== undefined).map((method) => accessKey(method, route))
  );
  for (const key of keys) {
    if (!Object.hasOwn(access, key)) throw new RangeError(`Cannot serve "${key}": the access table has no row for it`);
  }
  for (const [key, row] of Object.entries(access)) {
    if (!keys.includes(key)) throw new RangeError(`Cannot use the access row "${key}": there is no such route`);
    const isOperators = isOperatorRow(row);
    if (isOperators !== isAdminPath(key.slice(key.indexOf(" ") + 1))) {
      throw new RangeError(
        `Cannot use the access row "${key}": operators' credentials are for /admin, and /admin for them`,
      );
    }
    const isOpen = row.credential === "none" || isOperators || row.credential === "metrics";
    if (!isOpen && row.endpoint === undefined) {
      throw new RangeError(`Cannot use the access row "${key}": it names no endpoint`);
    }
  }
}

/** Returns true for a path of the admin side. */
export function isAdminPath(path: string): boolean {
  return path.startsWith("/admin/");
}

/** Returns true for a row of the admin side. */
export function isOperatorRow(row: Access | undefined): boolean {
  return row !== undefined && isOperatorCredential(row.credential);
}
