/** Creates the files and folders of a store. */
import { dirname } from "node:path";

/**
 * Creates a file (0600) and its folder (0700) if they are missing. Returns whether the file is new. An existing file is
 * not opened: closing it would release this process's SQLite locks on it (POSIX locks).
 * @throws {Error} before any change, if a symbolic link leads to a folder that the process may not read and write
 */
export function makeFile(file: string): boolean {
  const folder = dirname(file);
  requireRights(folder);
  Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    Deno.openSync(file, { createNew: true, write: true, mode: 0o600 }).close();
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.AlreadyExists) return false;
    throw error;
  }
}

/** Returns the facts about a file or folder; undefined if there is none. @throws {Error} for any other failure */
export async function findFile(path: string): Promise<Deno.FileInfo | undefined> {
  try {
    return await Deno.stat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** Syncs the file names in a folder to the disk. Does nothing on Windows, which cannot open a folder. */
export function syncFolder(folder: string): void {
  if (Deno.build.os === "windows") return;
  using opened = Deno.openSync(folder);
  opened.syncSync();
}

/**
 * Checks the permissions for the real path of a folder: Deno checks those for the path as written, but SQLite opens the
 * path with its links resolved.
 */
function requireRights(folder: string): void {
  const { path, real } = realFolder(folder);
  if (real === undefined || real === path) return;
  for (const name of ["read", "write"] as const) {
    if (Deno.permissions.querySync({ name, path: real }).state === "granted") continue;
    throw new Error(`"${path}" is a symbolic link to "${real}", where this program may not ${name}`);
  }
}

/**
 * Returns the real path of a folder or of its nearest existing parent; `real` is absent if the process may not read it.
 */
function realFolder(folder: string): { path: string; real?: string } {
  for (let path = folder;; path = dirname(path)) {
    try {
      return { path, real: Deno.realPathSync(path) };
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound) || path === dirname(path)) return { path };
    }
  }
}
