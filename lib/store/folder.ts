/** Files and folders of a store. */
import { dirname } from "node:path";

/**
 * Makes a folder (0700) where it is missing.
 * @throws {Error} before anything is made, where a symbolic link leads to where the process may not write
 */
function makeFolder(folder: string): void {
  requireRights(folder);
  Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
}

/**
 * Makes a file (0600) and its folder (0700) where they are missing. Returns whether the file is new.
 * A file that exists is not opened: closing it would end this process's SQLite locks on it.
 */
export function makeFile(file: string): boolean {
  makeFolder(dirname(file));
  try {
    Deno.openSync(file, { createNew: true, write: true, mode: 0o600 }).close();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.AlreadyExists) return false;
    throw error;
  }
}

/** Makes the names in a folder durable. Windows cannot open a folder. */
export function syncFolder(folder: string): void {
  if (Deno.build.os === "windows") return;
  using opened = Deno.openSync(folder);
  opened.syncSync();
}

/** Deno checks the path as written; SQLite opens the path after links are resolved. */
function requireRights(folder: string): void {
  const { path, real } = realFolder(folder);
  if (real === undefined || real === path) return;
  for (const name of ["read", "write"] as const) {
    if (Deno.permissions.querySync({ name, path: real }).state === "granted") continue;
    throw new Error(`"${path}" is a symbolic link to "${real}", where this program may not ${name}`);
  }
}

/** The real path of a folder, or of its nearest existing parent; absent where this process may not read it. */
function realFolder(folder: string): { path: string; real?: string } {
  for (let path = folder;; path = dirname(path)) {
    try {
      return { path, real: Deno.realPathSync(path) };
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound) || path === dirname(path)) return { path };
    }
  }
}
