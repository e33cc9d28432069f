/** A store in one SQLite file, which several processes of one machine may open at a time. */
import { dirname, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { MIGRATIONS } from "./migrations.ts";
import { openSqliteAnswers } from "./sqlite_answers.ts";
import { type KeyRecord, type Store, StoreError } from "./store.ts";

const COLUMNS = "id, name, hash, group_name, created_at, disabled, revoked_at";

/** A row of `keys`. */
interface KeyRow {
  id: string;
  name: string;
  hash: string;
  group_name: string;
  created_at: number;
  disabled: number;
  revoked_at: number | null;
}

/**
 * Opens the database, creating its folder (0700) and file (0600) where they are missing, and brings it up to date.
 *
 * @throws {StoreError} where the file cannot be opened, is damaged, or was written by a newer version
 */
export function openSqliteStore(path: string): Store {
  const db = open(path);
  const insert = db.prepare(
    `INSERT INTO keys (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  );
  const byHash = db.prepare(`SELECT ${COLUMNS} FROM keys WHERE hash = ?`);
  const all = db.prepare(`SELECT ${COLUMNS} FROM keys ORDER BY created_at, rowid`);
  const disable = db.prepare("UPDATE keys SET disabled = ? WHERE id = ? AND revoked_at IS NULL");
  const revoke = db.prepare("UPDATE keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL");
  return {
    addKey(key) {
      const { id, name, hash, group, createdAt, disabled, revokedAt = null } = key;
      return insert.run(id, name, hash, group, createdAt, Number(disabled), revokedAt).changes === 1;
    },
    findKeyByHash(hash) {
      const row = byHash.get(hash);
      return row === undefined ? undefined : toRecord(row as unknown as KeyRow);
    },
    listKeys: () => all.all().map((row) => toRecord(row as unknown as KeyRow)),
    setDisabled: (id, disabled) => disable.run(Number(disabled), id).changes === 1,
    revokeKey: (id, at) => revoke.run(at, id).changes === 1,
    answers: openSqliteAnswers(db),
    close: () => db.close(),
  };
}

function toRecord(row: KeyRow): KeyRecord {
  return {
    id: row.id,
    name: row.name,
    hash: row.hash,
    group: row.group_name,
    createdAt: row.created_at,
    disabled: row.disabled === 1,
    ...(row.revoked_at !== null && { revokedAt: row.revoked_at }),
  };
}

function open(path: string): DatabaseSync {
  let db: DatabaseSync | undefined;
  try {
    // Resolved, so that no path reads as one of SQLite's own names, such as ":memory:".
    const file = resolve(path);
    createFile(file);
    db = new DatabaseSync(file);
    db.exec("PRAGMA busy_timeout = 5000");
    db.exec("PRAGMA journal_mode = WAL");
    db.exec("PRAGMA synchronous = FULL");
    check(db);
    migrate(db);
    return db;
  } catch (cause) {
    db?.close();
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new StoreError(`Cannot open the store "${path}": ${why}`, { cause });
  }
}

/** The journals beside the file take its mode from SQLite. */
function createFile(file: string): void {
  Deno.mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  Deno.openSync(file, { create: true, write: true, mode: 0o600 }).close();
}

function check(db: DatabaseSync): void {
  const verdict = Object.values(db.prepare("PRAGMA quick_check(1)").get() ?? {})[0];
  if (verdict !== "ok") throw new Error(`the file is damaged (${String(verdict)})`);
}

function migrate(db: DatabaseSync): void {
  // Taken before the version is read: two processes that start together must not both run a step.
  db.exec("BEGIN IMMEDIATE");
  try {
    const version = Number(Object.values(db.prepare("PRAGMA user_version").get() ?? {})[0]);
    if (version > MIGRATIONS.length) {
      throw new Error(
        `it was written by a newer version of Sluice (shape ${version}, known up to ${MIGRATIONS.length})`,
      );
    }
    for (const step of MIGRATIONS.slice(version)) db.exec(step);
    db.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
    db.exec("COMMIT");
  } catch (error) {
    db.exec("ROLLBACK");
    throw error;
  }
}
