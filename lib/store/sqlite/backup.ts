/** Makes a consistent copy of a SQLite store while a gateway may serve from it. */
import { dirname, resolve } from "node:path";
import { DatabaseSync, type SupportedValueType } from "node:sqlite";
import { messageOf } from "../../errors.ts";
import { syncFolder } from "../folder.ts";
import { readNumber } from "./pragma.ts";
import { StoreError } from "../store.ts";

/** Rows that are copied between two pauses. */
const ROWS_PER_STEP = 500;

/** SQLite's table of the last ids of AUTOINCREMENT tables. */
const SEQUENCE_TABLE = "sqlite_sequence";

/**
 * Copies a SQLite store, as of one moment, into a new file (0600). A gateway may serve from the store meanwhile,
 * without being disturbed. To restore, replace the store with the copy while nothing serves from it.
 * @param from path of the store
 * @param to path of the copy, which must not exist
 * @throws {StoreError} if there is no such store, the copy exists, or it cannot be written
 */
export async function backupStore(from: string, to: string): Promise<void> {
  try {
    if (!(await Deno.stat(resolve(from))).isFile) throw new Error(`"${from}" is not a file`);
    for (const _ of copyFile(resolve(from), resolve(to))) await new Promise((resolve) => setTimeout(resolve, 0));
  } catch (cause) {
    throw new StoreError(`Cannot copy the store "${from}" to "${to}": ${reasonOf(cause, { from, to })}`, { cause });
  }
}

/**
 * Copies a consistent snapshot of a SQLite file into a new file (0600), a few rows at a time. A process that is killed
 * during the copy leaves only `TARGET.partial`.
 */
export function* copyFile(source: string, target: string): Generator<void> {
  const partial = partialOf(target);
  requireNone(target);
  // Fails if the file exists, so that two copies to the same target do not mix.
  Deno.openSync(partial, { createNew: true, write: true, mode: 0o600 }).close();
  try {
    yield* copy(source, partial);
    syncFile(partial);
    requireNone(target);
    Deno.renameSync(partial, target);
    syncFolder(dirname(target));
  } finally {
    removeQuietly(partial);
  }
}

/** Returns the name of a copy while it is incomplete. */
export function partialOf(target: string): string {
  return `${target}.partial`;
}

/** Checks that there is no file. @throws {Deno.errors.AlreadyExists} */
function requireNone(file: string): void {
  if (fileExists(file)) throw new Deno.errors.AlreadyExists(file);
}

/** Returns whether there is a file, or a symbolic link of this name. */
export function fileExists(file: string): boolean {
  try {
    Deno.lstatSync(file);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Deletes a file if it exists. Errors are ignored, as the caller reports the error that came first. */
export function removeQuietly(file: string): void {
  try {
    Deno.removeSync(file);
  } catch {
    // See above.
  }
}

/**
 * Copies a database row by row: `VACUUM INTO` attaches a second database, which Deno allows only with all permissions.
 * The rows come from one snapshot, even if others write at the same time.
 */
function* copy(source: string, target: string): Generator<void> {
  const from = new DatabaseSync(source, { readOnly: true });
  try {
    const to = new DatabaseSync(target);
    try {
      yield* copyAll(from, to);
    } finally {
      to.close();
    }
  } finally {
    from.close();
  }
}

function* copyAll(from: DatabaseSync, to: DatabaseSync): Generator<void> {
  // The copy needs no journal and no syncs, since it gets its name only when it is complete and synced.
  to.exec("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
  from.exec("BEGIN");
  // SQLite creates its own tables: `sqlite_sequence` with the first AUTOINCREMENT table, statistics with ANALYZE.
  const schema = from.prepare(
    "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT GLOB 'sqlite_*'",
  )
    .all().map(({ type, name, sql }) => ({ type: String(type), name: String(name), sql: String(sql) }));
  const [tables, others] = [schema.filter(isTable), schema.filter((object) => !isTable(object))];
  for (const { sql } of tables) to.exec(sql);
  for (const { name } of tables) yield* copyRows(from, { to, name });
  // The table may be missing in the copy: SQLite keeps it in the store even if the last AUTOINCREMENT table is dropped.
  if (to.prepare("SELECT 1 FROM sqlite_schema WHERE name = ?").get(SEQUENCE_TABLE) !== undefined) {
    to.exec(`DELETE FROM ${SEQUENCE_TABLE}`);
    yield* copyRows(from, { to, name: SEQUENCE_TABLE });
  }
  // Triggers come last, so that they do not fire for copied rows.
  for (const { sql } of others) to.exec(sql);
  to.exec(`COMMIT; PRAGMA user_version = ${readNumber(from, "user_version")}`);
}

function isTable({ type }: { type: string }): boolean {
  return type === "table";
}

function* copyRows(from: DatabaseSync, { to, name }: { to: DatabaseSync; name: string }): Generator<void> {
  const columns = from.prepare(`PRAGMA table_info("${name}")`).all().map((column) => `"${String(column.name)}"`).join(
    ", ",
  );
  const read = from.prepare(`SELECT ${columns} FROM "${name}"`);
  read.setReadBigInts(true);
  let write: ReturnType<DatabaseSync["prepare"]> | undefined;
  let count = 0;
  for (const row of read.iterate()) {
    const values = Object.values(row as Record<string, SupportedValueType>);
    write ??= to.prepare(`INSERT INTO "${name}" (${columns}) VALUES (${values.map(() => "?").join(", ")})`);
    write.run(...values);
    if (++count % ROWS_PER_STEP === 0) yield;
  }
}

function syncFile(file: string): void {
  using opened = Deno.openSync(file, { read: true, write: true });
  opened.syncSync();
}

function reasonOf(error: unknown, { from, to }: { from: string; to: string }): string {
  if (error instanceof Deno.errors.NotFound) return `"${from}" or the folder of "${to}" does not exist`;
  if (error instanceof Deno.errors.AlreadyExists) return "the copy, or an unfinished one, already exists";
  return messageOf(error);
}
