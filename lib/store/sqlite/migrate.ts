/** Migrates a SQLite file: checks it, copies it, and changes it in one transaction. */
import { DatabaseSync } from "node:sqlite";
import { dirname } from "node:path";
import { messageOf } from "../../errors.ts";
import { copyFile, fileExists, partialOf, removeQuietly } from "./backup.ts";
import { MIGRATIONS } from "./migrations.ts";
import { readNumber } from "./pragma.ts";
import { checkAll, checkLastEntries, checkStructure } from "./integrity.ts";
import { BUSY_MS } from "./connect.ts";
import { syncFolder } from "../folder.ts";
import { takeFileOwnership } from "./owner_lock.ts";
import { type Migrated, newerStore } from "../store.ts";
import { atomically } from "./transaction.ts";

/** Returns the number of applied steps. @throws {Error} if a newer version or another program has made the file */
export function knownVersion(db: DatabaseSync): number {
  const version = readNumber(db, "user_version");
  if (version > MIGRATIONS.length) throw newerStore(version, MIGRATIONS.length);
  // Steps and their number are written in one transaction, so a file with tables but without a version belongs to
  // another program.
  if (version === 0 && db.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() !== undefined) {
    throw new Error("it is a database of another program, with tables of its own");
  }
  return version;
}

/**
 * Returns the number of applied steps of a file that must be migrated; undefined for any other, or if it cannot be read.
 */
export function olderVersion(file: string): number | undefined {
  try {
    using db = new DatabaseSync(file, { readOnly: true });
    const version = readNumber(db, "user_version");
    return version > 0 && version < MIGRATIONS.length ? version : undefined;
  } catch {
    return undefined;
  }
}

/** The result of an inspection of a file. */
export interface Preview {
  /** Number of applied steps. */
  version: number;
  /**
   * Closes the connection of the inspection. If the file was rejected, it must be closed after all others: otherwise
   * the last writable connection would merge the log into the file, which must stay unchanged.
   */
  close(): void;
}

/**
 * Checks a file before anything is written to it: completely if it must be migrated, otherwise with quick checks if
 * this process will serve from it.
 * @param isOwner whether this process will serve from the file
 * @throws {Error} if it is damaged, newer, or belongs to another program
 */
export function previewFile(file: string, isOwner: boolean): Preview {
  // If a crash has interrupted a write, only a writable connection can undo it.
  const db = new DatabaseSync(file, { readOnly: !fileExists(`${file}-journal`) });
  try {
    db.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    const version = knownVersion(db);
    if (version > 0 && version < MIGRATIONS.length) checkAll(db);
    else if (isOwner && version > 0) {
      checkStructure(db);
      checkLastEntries(db);
    }
    return { version, close: () => db.close() };
  } catch (error) {
    db.close();
    throw error;
  }
}

/** Creates the tables of a new file. */
export function makeTables(db: DatabaseSync): void {
  // The version is read again within the transaction, so that of two processes that start together only one creates
  // them.
  atomically(db, () => runSteps(db, knownVersion(db)));
}

/**
 * Migrates an older file in one transaction, after copying it. Checks the last entries in their new form before the
 * commit. A rejected file stays unchanged.
 * @param isOwner whether this process owns the file
 * @returns the facts of the migration; `undefined` if another process was faster
 * @throws {Error} if a gateway serves from it, unless this process owns it
 */
export function migrateFile(file: string, isOwner: boolean): Migrated | undefined {
  // No gateway of an older version may run meanwhile: it relies on the schema as it is.
  using _ownership = isOwner ? undefined : takeForMigration(file);
  const db = new DatabaseSync(file);
  let copy: string | undefined;
  try {
    db.exec(`PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON`);
    return atomically(db, () => {
      const from = knownVersion(db);
      if (from === MIGRATIONS.length) return undefined;
      copy = copyBeforeMigration(file, from);
      runSteps(db, from);
      checkLastEntries(db);
      copy = nameCopy(copy);
      return { from, to: MIGRATIONS.length, copy };
    });
  } catch (error) {
    if (copy !== undefined) removeQuietly(copy);
    throw error;
  } finally {
    db.close();
  }
}

/** Suffix of the name of a copy until its migration is about to be committed. */
const UNFINISHED = ".unfinished";

/** Applies the steps after a version. */
function runSteps(db: DatabaseSync, version: number): void {
  if (version === MIGRATIONS.length) return;
  for (const step of MIGRATIONS.slice(version)) db.exec(step);
  db.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
}

/**
 * Copies the file within the transaction, so that nothing else can write to it during the copy. Returns the path of the
 * copy, which is the same at every attempt: a migration that is killed repeatedly must not fill the disk.
 */
function copyBeforeMigration(file: string, version: number): string {
  const copy = `${file}.shape-${version}${UNFINISHED}`;
  try {
    const partial = partialOf(copy);
    for (const left of [copy, partial, `${partial}-journal`]) removeQuietly(left);
    const steps = copyFile(file, copy);
    while (steps.next().done !== true);
    return copy;
  } catch (cause) {
    throw new Error(
      `it needs a migration, and the backup copy before it failed: ${messageOf(cause)}`,
      { cause },
    );
  }
}

/** Renames the copy to its final name, which has the time, just before the migration is committed. Returns the path. */
function nameCopy(copy: string): string {
  const named = `${copy.slice(0, -UNFINISHED.length)}-${new Date().toISOString().replaceAll(/[-:]|\.\d+/g, "")}`;
  Deno.renameSync(copy, named);
  syncFolder(dirname(named));
  return named;
}

/** Takes ownership of the file during a migration. @throws {Error} if a gateway serves from it */
function takeForMigration(file: string): Disposable {
  try {
    const ownership = takeFileOwnership(file);
    return { [Symbol.dispose]: () => ownership.close() };
  } catch (cause) {
    const why = `it needs a migration, and ${messageOf(cause)}: stop or restart that gateway first`;
    throw new Error(why, { cause });
  }
}
