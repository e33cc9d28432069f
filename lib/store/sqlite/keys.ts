// deno-lint-ignore-file require-await -- calls that throw must reject
/** The API keys in a SQLite database. */
import { nextTick } from "node:process";
import type { DatabaseSync, StatementResultingChanges } from "node:sqlite";
import { type KeyRow, toKeyRecord } from "../key_row.ts";
import type { KeyRecord, KeyStore } from "../keys.ts";
import { type ChangeAction, type ChangeOrigin, keyChange } from "../operators.ts";
import { prepareChangeLog } from "./operators.ts";
import { atomically } from "./transaction.ts";

const COLUMNS = "id, name, hash, group_name, created_at, disabled, revoked_at, expires_at, last_used_at, rules, " +
  "former_hash, former_until";

/**
 * Opens the keys of a migrated database.
 * @param watch a connection to the same file, which sees the commits of `db` and all others. It should be the
 * connection that writes most, because its own commits do not count as possible changes of keys
 */
export function openSqliteKeys(db: DatabaseSync, watch: DatabaseSync = db): KeyStore {
  const versions = openVersions(watch);
  const statements = prepareStatements(db);
  const logChange = prepareChangeLog(db);

  function read(id: string): KeyRecord | undefined {
    const row = statements.byId.get(id);
    return row === undefined ? undefined : toKey(row);
  }

  /** Changes one key. Logs the change in the same transaction if it has an origin. */
  function change(
    id: string,
    { action, origin }: { action: ChangeAction; origin: ChangeOrigin | undefined },
    run: () => StatementResultingChanges,
  ): boolean {
    versions.changed();
    if (origin === undefined) return run().changes === 1;
    return atomically(db, () => {
      const before = read(id);
      const isDone = run().changes === 1;
      const after = read(id);
      if (!isDone || after === undefined) return isDone;
      const logged = keyChange(origin, { action, ...(before !== undefined && { before }), after });
      if (logged !== undefined) logChange(logged);
      return isDone;
    });
  }

  return {
    version: versions.read,
    async add(key, origin) {
      return change(key.id, { action: "create_key", origin }, () =>
        statements.insert.run({
          id: key.id,
          name: key.name,
          hash: key.hash,
          group: key.group,
          createdAt: key.createdAt,
          disabled: Number(key.disabled),
          revokedAt: key.revokedAt ?? null,
          expiresAt: key.expiresAt ?? null,
          lastUsedAt: key.lastUsedAt ?? null,
          rules: JSON.stringify(key.rules),
          former: key.former?.hash ?? null,
          until: key.former?.until ?? null,
        }));
    },
    async findByHash(hash, now) {
      const row = statements.byHash.get(hash) ?? statements.byFormer.get(hash, now);
      return row === undefined ? undefined : toKey(row);
    },
    async list() {
      return statements.all.all().map(toKey);
    },
    async summary(limit) {
      const { total, inUse } = statements.count.get() as { total: number; inUse: number };
      return { total, inUse, oldest: statements.oldest.all(limit).map(toKey) };
    },
    async page({ after, limit }) {
      const rows = statements.page.all(after, limit);
      const keys = rows.map(toKey);
      return rows.length < limit ? { keys } : { keys, next: Number(rows.at(-1)?.place) };
    },
    async find(nameOrId) {
      const row = statements.byId.get(nameOrId) ?? statements.byName.get(nameOrId) ??
        statements.byFormerName.get(nameOrId);
      return row === undefined ? undefined : toKey(row);
    },
    async findIds(ids) {
      return statements.byIds.all(JSON.stringify(ids)).map(toKey);
    },
    async change(id, { disabled, group, rules, expiresAt, seen }, origin) {
      return change(id, { action: "change_key", origin }, () =>
        statements.change.run({
          id,
          disabled: disabled === undefined ? null : Number(disabled),
          group: group ?? null,
          rules: rules === undefined ? null : JSON.stringify(rules),
          expires: Number(expiresAt !== undefined),
          expiresAt: expiresAt ?? null,
          isSeen: Number(seen !== undefined),
          seenGroup: seen?.group ?? null,
          seenRules: JSON.stringify(seen?.rules ?? null),
          seenExpiry: seen?.expiresAt ?? null,
        }));
    },
    async revoke(id, at, origin) {
      return change(id, { action: "revoke_key", origin }, () => statements.revoke.run(at, id));
    },
    async rotate(id, { hash, until, from = null }, origin) {
      return change(id, { action: "rotate_key", origin }, () => statements.rotate.run({ id, hash, until, from }));
    },
    async touch(used) {
      versions.changed();
      statements.touch.run(JSON.stringify(Object.fromEntries(used)));
    },
  };
}

function toKey(row: unknown): KeyRecord {
  return toKeyRecord(row as KeyRow);
}

function prepareStatements(db: DatabaseSync) {
  return {
    // Named parameters, because some supported Deno versions lack numbered ones.
    insert: db.prepare(
      `INSERT INTO keys (${COLUMNS})
     SELECT :id, :name, :hash, :group, :createdAt, :disabled, :revokedAt, :expiresAt, :lastUsedAt, :rules, :former, :until
     WHERE NOT EXISTS (SELECT 1 FROM keys WHERE hash = :former OR former_hash IN (:hash, :former))
     ON CONFLICT DO NOTHING`,
    ),
    byHash: db.prepare(`SELECT ${COLUMNS} FROM keys WHERE hash = ?`),
    byFormer: db.prepare(`SELECT ${COLUMNS} FROM keys WHERE former_hash = ? AND former_until > ?`),
    all: db.prepare(`SELECT ${COLUMNS} FROM keys ORDER BY rowid`),
    count: db.prepare("SELECT count(*) AS total, count(*) FILTER (WHERE revoked_at IS NULL) AS inUse FROM keys"),
    oldest: db.prepare(`SELECT ${COLUMNS} FROM keys WHERE revoked_at IS NULL ORDER BY rowid LIMIT ?`),
    page: db.prepare(`SELECT ${COLUMNS}, rowid AS place FROM keys WHERE rowid > ? ORDER BY rowid LIMIT ?`),
    byId: db.prepare(`SELECT ${COLUMNS} FROM keys WHERE id = ?`),
    byName: db.prepare(`SELECT ${COLUMNS} FROM keys WHERE name = ? AND revoked_at IS NULL`),
    byFormerName: db.prepare(`SELECT ${COLUMNS} FROM keys WHERE name = ? ORDER BY rowid DESC LIMIT 1`),
    byIds: db.prepare(`SELECT ${COLUMNS} FROM keys WHERE id IN (SELECT value FROM json_each(?))`),
    // One statement, so that no concurrent change by another process is lost.
    change: db.prepare(
      `UPDATE keys SET disabled = coalesce(:disabled, disabled), group_name = coalesce(:group, group_name),
     rules = coalesce(:rules, rules), expires_at = iif(:expires, :expiresAt, expires_at)
     WHERE id = :id AND revoked_at IS NULL
     AND (NOT :isSeen OR group_name = :seenGroup AND rules = :seenRules AND expires_at IS :seenExpiry)`,
    ),
    revoke: db.prepare(
      "UPDATE keys SET revoked_at = ?, former_hash = NULL, former_until = NULL WHERE id = ? AND revoked_at IS NULL",
    ),
    rotate: db.prepare(
      `UPDATE keys SET former_hash = hash, former_until = :until, hash = :hash WHERE id = :id AND revoked_at IS NULL
     AND hash = coalesce(:from, hash) AND NOT EXISTS (SELECT 1 FROM keys WHERE hash = :hash OR former_hash = :hash)`,
    ),
    touch: db.prepare(
      `UPDATE keys SET last_used_at = used.value FROM json_each(?) AS used
     WHERE keys.id = used.key AND used.value > coalesce(last_used_at, -1)`,
    ),
  };
}

/** The version of the keys in a file. */
interface Versions {
  /** Returns the version: see `KeyStore.version`. */
  read(): number;
  /** Must be called before this process itself changes keys. */
  changed(): void;
}

function openVersions(db: DatabaseSync): Versions {
  // The value changes after a commit of any other connection, in any process.
  const others = db.prepare("PRAGMA data_version");
  let lastValue: unknown;
  let version = 0;
  /**
   * True if the file was checked in this turn of the event loop. All requests of a turn arrived before it began, so
   * one check sees every change that was made before any of them was sent. A check takes 5 to 7 µs.
   */
  let isFresh = false;

  function markStale(): void {
    isFresh = false;
  }

  return {
    read() {
      if (isFresh) return version;
      const value = others.get()?.data_version;
      if (value !== lastValue) version++;
      lastValue = value;
      isFresh = true;
      nextTick(markStale);
      return version;
    },
    changed: () => void version++,
  };
}
