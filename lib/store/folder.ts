/** The folder of a store. */
import { dirname } from "node:path";

/**
 * Makes a folder (0700) where it is missing.
 * @throws {Error} before anything is made, where a symbolic link leads to where the process may not write
 */
export function makeFolder(folder: string): void {
  requireRights(folder);
  Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
}

/** The runtime judges a path as it is written, and SQLite opens what it leads to. */
function requireRights(folder: string): void {
  const { path, real } = realFolder(folder);
  if (real === undefined || real === path) return;
  for (const name of ["read", "write"] as const) {
    if (Deno.permissions.querySync({ name, path: real }).state === "granted") continue;
    throw new Error(`"${path}" is a symbolic link to "${real}", where this program may not ${name}`);
  }
}

/** Where a folder really is, or the nearest one above it that is there; absent where this process may not look. */
function realFolder(folder: string): { path: string; real?: string } {
  for (let path = folder;; path = dirname(path)) {
    try {
      return { path, real: Deno.realPathSync(path) };
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound) || path === dirname(path)) return { path };
    }
  }
}
