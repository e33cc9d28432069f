/** Checks the files of the SQLite store: access rights, free space, the database, and other processes that use them. */
import { statfs } from "node:fs";
import { dirname, resolve } from "node:path";
import { promisify } from "node:util";
import { faultOf, reasonOf } from "../causes.ts";
import type { Config } from "../config.ts";
import { findFile } from "../store/folder.ts";
import { previewFile } from "../store/sqlite/migrate.ts";
import { MIGRATIONS } from "../store/sqlite/migrations.ts";
import { takeOwnership } from "../store/sqlite/owner_lock.ts";
import { createNotes, type Finding, type Notes } from "./finding.ts";
import type { ServingState } from "./gateway.ts";

/** Suffixes of the database's files in WAL mode, and of the lock file of its owner. */
const FILE_SUFFIXES = ["", "-wal", "-shm", "-owner"];

/** Bytes that are written as a test if the system does not report the free space. */
const TEST_BYTES = 16 * 1024 * 1024;
const TEST_TEXT = "16 MiB";
/** Free space below which a disk is full, in bytes. */
const FULL_BYTES = 1024 * 1024;
/** Free space that is enough not to be reported, in bytes. */
const ENOUGH_FREE_BYTES = 1024 * 1024 * 1024;

/**
 * Checks the files of the store. Returns no findings for another kind of store.
 * @param serving returns the state of the gateway at the address of the configuration, `undefined` if none answers;
 * absent: this process is that gateway
 */
export async function checkStoreFiles(
  { store }: Pick<Config, "store">,
  serving: (() => Promise<ServingState | undefined>) | undefined,
): Promise<Finding[]> {
  const notes = createNotes("store");
  if (store.kind !== "sqlite") return notes.found;
  const path = resolve(store.path);
  const folder = dirname(path);
  try {
    const info = await findFile(folder);
    if (info === undefined) {
      notes.ok(`"${folder}" does not exist yet; the first start creates it`);
      return notes.found;
    }
    if (!info.isDirectory) {
      notes.error(`"${folder}" is not a folder`, "Set store to another path");
      return notes.found;
    }
    await checkModes(notes, { folder, path });
    if (!await hasFreeSpace(notes, folder)) return notes.found;
    if (serving === undefined) notes.ok("This gateway uses it");
    else {
      await checkDatabase(notes, path);
      await checkOwner(notes, path, serving);
    }
  } catch (error) {
    const denied = error instanceof Deno.errors.NotCapable;
    notes.error(
      `"${folder}" cannot be read: ${reasonOf(error)}`,
      denied
        ? "Set store to a path in ./data or /var/lib/sluice"
        : "Give the user who runs the gateway read and write permission",
    );
  }
  return notes.found;
}

/**
 * Checks that other users cannot read the files: keys are stored as hashes, but costs and names are private. A system
 * without file modes reports no mode, which passes.
 */
async function checkModes(notes: Notes, { folder, path }: { folder: string; path: string }): Promise<void> {
  const databaseFiles = FILE_SUFFIXES.map((suffix) => ({ file: path + suffix, octal: "0600" }));
  let accessible = 0;
  for (const { file, octal } of [{ file: folder, octal: "0700" }, ...databaseFiles]) {
    const mode = (await findFile(file))?.mode ?? 0;
    if ((mode & 0o077) === 0) continue;
    accessible++;
    const bits = (mode & 0o777).toString(8).padStart(4, "0");
    notes.warn(`"${file}" can be accessed by other users of this machine (${bits})`, `Run chmod ${octal} on it`);
  }
  if (accessible === 0) notes.ok(`"${folder}" and its files are accessible to their owner only`);
}

/**
 * Checks the free space, and that a file can be written. Returns false if the disk is full: SQLite then reports faults
 * of a file that has none.
 */
async function hasFreeSpace(notes: Notes, folder: string): Promise<boolean> {
  const free = await freeBytes(folder);
  const file = `${folder}/.sluice-doctor-${crypto.randomUUID()}`;
  try {
    await Deno.writeFile(file, new Uint8Array(free === undefined ? TEST_BYTES : 1), { createNew: true, mode: 0o600 });
  } catch (error) {
    if (faultOf(error) === "disk full") {
      return noteFullDisk(notes, folder, free === undefined ? `has less than ${TEST_TEXT} of free space` : "is full");
    }
    notes.error(
      `"${folder}" is not writable: ${reasonOf(error)}`,
      "Give the user who runs the gateway write permission",
    );
    return true;
  } finally {
    await Deno.remove(file).catch(() => {});
  }
  if (free === undefined) {
    notes.ok(`"${folder}" is writable, at least ${TEST_TEXT}`);
    return true;
  }
  if (free < FULL_BYTES) return noteFullDisk(notes, folder, "is full");
  const text = `${(free / 1024 / 1024 / 1024).toFixed(1)} GiB free in "${folder}"`;
  if (free >= ENOUGH_FREE_BYTES) notes.ok(`It is writable; ${text}`);
  else notes.warn(`Only ${text}`, "Free disk space: without room for the ledger, requests are refused");
  return true;
}

function noteFullDisk(notes: Notes, folder: string, state: string): false {
  notes.error(
    `The disk of "${folder}" ${state}`,
    "Free disk space: on a full disk the gateway does not start, and a running one refuses requests",
  );
  return false;
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

/** Checks the database as a start does, without changing it. */
async function checkDatabase(notes: Notes, path: string): Promise<void> {
  if (await findFile(path) === undefined) {
    return notes.ok(`"${path}" does not exist; the next start creates it`);
  }
  try {
    const { version, close } = previewFile(path, true);
    close();
    if (version === MIGRATIONS.length) notes.ok(`Its tables are up to date (schema ${version})`);
    else if (version === 0) notes.ok("It has no tables yet; the next start creates them");
    else notes.ok(`Its tables have schema ${version}; the next start migrates them to ${MIGRATIONS.length}`);
  } catch (error) {
    notes.error(
      `It cannot be used: ${reasonOf(error)}`,
      "Repair the file or its permissions. For a newer version, start that version or restore a backup",
    );
  }
}

/**
 * Checks that the files of a database without a gateway can be written: a copy may belong to the user who restored it.
 * Files that this process has open must not be closed, because that would release its locks.
 */
async function checkWritable(notes: Notes, path: string): Promise<void> {
  for (const file of FILE_SUFFIXES.map((suffix) => path + suffix)) {
    if (await findFile(file) === undefined) continue;
    try {
      (await Deno.open(file, { read: true, write: true })).close();
    } catch (error) {
      notes.error(`"${file}" is not writable: ${reasonOf(error)}`, "Make it belong to the user who runs the gateway");
    }
  }
}

/** Checks whether another process owns the store. */
async function checkOwner(
  notes: Notes,
  path: string,
  serving: () => Promise<ServingState | undefined>,
): Promise<void> {
  if (await findFile(`${path}-owner`) === undefined) return await checkWritable(notes, path);
  try {
    takeOwnership(`${path}-owner`).close();
  } catch (error) {
    if (!/another gateway/.test(reasonOf(error))) throw error;
    if (await serving() !== undefined) return notes.ok("A gateway uses it and answers");
    return notes.warn(
      "Another process uses it, but no gateway answers at the address of this configuration",
      "End that process before the next start, or check whether it has another configuration",
    );
  }
  notes.ok("No gateway uses it");
  await checkWritable(notes, path);
}
