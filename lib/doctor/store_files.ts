/** Checks the files of the SQLite store: access rights, free space, and other processes that use them. */
import { statfs } from "node:fs";
import { dirname, resolve } from "node:path";
import { promisify } from "node:util";
import type { Config } from "../config.ts";
import { takeOwnership } from "../store/sqlite/owner_lock.ts";
import { createNotes, type Finding, type Notes, reasonOf } from "./finding.ts";

/** Suffixes of the database's files in WAL mode, and of the lock file of its owner. */
const FILE_SUFFIXES = ["", "-wal", "-shm", "-owner"];

/** Bytes that are written as a test if the system does not report the free space. */
const TEST_BYTES = 16 * 1024 * 1024;
/** Free space that is enough not to be reported, in bytes. */
const ENOUGH_FREE_BYTES = 1024 * 1024 * 1024;

/**
 * Checks the files of the store. Returns no findings for another kind of store.
 * @param isServing returns whether a gateway answers at the address of the configuration; `undefined`: this process is
 * that gateway
 */
export async function checkStoreFiles(
  { store }: Pick<Config, "store">,
  isServing: (() => Promise<boolean>) | undefined,
): Promise<Finding[]> {
  const notes = createNotes("store");
  if (store.kind !== "sqlite") return notes.found;
  const path = resolve(store.path);
  const folder = dirname(path);
  try {
    const info = await Deno.stat(folder).catch(absent);
    if (info === undefined) {
      notes.ok(`"${folder}" does not exist yet; the first start creates it`);
      return notes.found;
    }
    if (!info.isDirectory) {
      notes.error(`"${folder}" is not a folder`, "Set store to another path");
      return notes.found;
    }
    await checkModes(notes, { folder, path });
    await checkFreeSpace(notes, folder);
    if (isServing === undefined) notes.ok("This gateway uses it");
    else await checkOwner(notes, path, isServing);
  } catch (error) {
    const denied = error instanceof Deno.errors.NotCapable;
    notes.error(
      `"${folder}" cannot be read: ${reasonOf(error)}`,
      denied
        ? "This executable may only use ./data and /var/lib/sluice: keep the store there"
        : "Give the user who runs the gateway read and write permission",
    );
  }
  return notes.found;
}

/** Returns `undefined` for the error that a file is missing, and throws any other error. */
function absent(error: unknown): undefined {
  if (error instanceof Deno.errors.NotFound) return undefined;
  throw error;
}

/**
 * Checks that other users cannot read the files: keys are stored as hashes, but costs and names are private. A system
 * without file modes reports no mode, which passes.
 */
async function checkModes(notes: Notes, { folder, path }: { folder: string; path: string }): Promise<void> {
  const databaseFiles = FILE_SUFFIXES.map((suffix) => ({ file: path + suffix, octal: "0600" }));
  let accessible = 0;
  for (const { file, octal } of [{ file: folder, octal: "0700" }, ...databaseFiles]) {
    const mode = (await Deno.stat(file).catch(absent))?.mode ?? 0;
    if ((mode & 0o077) === 0) continue;
    accessible++;
    const bits = (mode & 0o777).toString(8).padStart(4, "0");
    notes.warn(`"${file}" can be accessed by other users of this machine (${bits})`, `Run chmod ${octal} on it`);
  }
  if (accessible === 0) notes.ok(`"${folder}" and its files are accessible to their owner only`);
}

/** Checks the free space, and that a file can be written. */
async function checkFreeSpace(notes: Notes, folder: string): Promise<void> {
  const free = await freeBytes(folder);
  const file = `${folder}/.sluice-doctor-${crypto.randomUUID()}`;
  try {
    await Deno.writeFile(file, new Uint8Array(free === undefined ? TEST_BYTES : 1), { createNew: true, mode: 0o600 });
  } catch (error) {
    notes.error(
      `"${folder}" is not writable: ${reasonOf(error)}`,
      "Give the user who runs the gateway write permission, and free disk space",
    );
    return;
  } finally {
    await Deno.remove(file).catch(() => {});
  }
  if (free === undefined) return notes.ok(`"${folder}" is writable, at least ${TEST_BYTES / 1024 / 1024} MiB`);
  const text = `${(free / 1024 / 1024 / 1024).toFixed(1)} GiB free in "${folder}"`;
  if (free >= ENOUGH_FREE_BYTES) return notes.ok(`It is writable; ${text}`);
  notes.warn(`Only ${text}`, "Free disk space: without room for the ledger, requests are refused");
}

/**
 * Returns the free space in bytes; `undefined` if the process lacks the permission, as the compiled executable does.
 */
async function freeBytes(folder: string): Promise<number | undefined> {
  const { state } = await Deno.permissions.query({ name: "sys", kind: "statfs" });
  if (state !== "granted") return undefined;
  const { bavail, bsize } = await promisify(statfs)(folder);
  return Number(bavail) * Number(bsize);
}

/** Checks whether another process owns the store. */
async function checkOwner(notes: Notes, path: string, isServing: () => Promise<boolean>): Promise<void> {
  if (await Deno.stat(`${path}-owner`).catch(absent) === undefined) return;
  try {
    takeOwnership(`${path}-owner`).close();
  } catch (error) {
    if (!/another gateway/.test(reasonOf(error))) throw error;
    if (await isServing()) return notes.ok("A gateway uses it and answers");
    return notes.warn(
      "Another process uses it, but no gateway answers at the address of this configuration",
      "End that process before the next start, or check whether it has another configuration",
    );
  }
  notes.ok("No gateway uses it");
}
