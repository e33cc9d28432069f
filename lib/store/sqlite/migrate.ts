/** Migrates a SQLite file: checks it, copies it, and changes it in one transaction. */
import { DatabaseSync } from "node:sqlite";
import { messageOf } from "../../errors.ts";
import { copyFile } from "./backup.ts";
import { MIGRATIONS } from "./migrations.ts";
import { readNumber } from "./pragma.ts";
import { checkAll, checkLastEntries, checkStructure } from "./integrity.ts";
import { BUSY_MS } from "./connect.ts";
import { takeFile } from "./owner_lock.ts";
import { type Migrated, newerStore } from "../store.ts";
import { atomically } from "./transaction.ts";

/** Number of applied migrations. @throws {Error} if there are more than this version knows */
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

/** A read-only inspection of a file. */
export interface Preview {
  /** Number of applied migrations. */
  version: number;
  /**
   * Closes the inspection. For a rejected file, close it after all other connections: the last writable connection to
   * close would merge the log into the file.
   */
  close(): void;
}

/**
 * Checks a file before anything is written to it: completely if it is to be migrated, otherwise, if this process will
 * serve from it, with quick checks.
 *
 * @throws {Error} if it is damaged, newer, or belongs to another program
 */
export function previewFile(file: string, own: boolean): Preview {
  // Only a writable connection can undo a write that a crash interrupted.
  const db = new DatabaseSync(file, { readOnly: !isThere(`${file}-journal`) });
  try {
    db.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    const version = knownVersion(db);
    if (version > 0 && version < MIGRATIONS.length) checkAll(db);
    else if (own && version > 0) {
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
  // Checked again within the transaction: two processes that start together must not both create them.
  atomically(db, () => runSteps(db, knownVersion(db)));
}

/**
 * Migrates an older file in one transaction, after copying it. Verifies the last entries in the new form before the
 * commit. A rejected file stays unchanged.
 * @returns the steps done; `undefined` if another process was faster
 * @throws {Error} if a gateway serves from it, unless this process owns it
 */
export function bringUpToDate(file: string, own: boolean): Migrated | undefined {
  // A running gateway relies on the current schema.
  using _ownership = own ? undefined : takeOutdated(file);
  const db = new DatabaseSync(file);
  let copy: string | undefined;
  try {
    db.exec(`PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON`);
    return atomically(db, () => {
      const from = knownVersion(db);
      if (from === MIGRATIONS.length) return undefined;
      copy = copyBefore(file, from);
      runSteps(db, from);
      checkLastEntries(db);
      return { from, to: MIGRATIONS.length, copy };
    });
  } catch (error) {
    if (copy !== undefined) Deno.removeSync(copy);
    throw error;
  } finally {
    db.close();
  }
}

function runSteps(db: DatabaseSync, version: number): void {
  if (version === MIGRATIONS.length) return;
  for (const step of MIGRATIONS.slice(version)) db.exec(step);
  db.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
}

/** Copies the file, which nothing else can write meanwhile. Returns the path of the copy. */
function copyBefore(file: string, version: number): string {
  const at = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, "");
  const copy = `${file}.shape-${version}-${at}`;
  try {
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

function takeOutdated(file: string): Disposable {
  try {
    const ownership = takeFile(file);
    return { [Symbol.dispose]: () => ownership.close() };
  } catch (cause) {
    const why = `it needs a migration, and ${messageOf(cause)}: stop or restart that gateway first`;
    throw new Error(why, { cause });
  }
}

function isThere(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
