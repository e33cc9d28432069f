/** API keys in the SQLite file. */
import type { DatabaseSync } from "node:sqlite";
import type { KeyRecord, KeyStore } from "./keys.ts";

const COLUMNS = "id, name, hash, group_name, created_at, disabled, revoked_at, expires_at, last_used_at, rules, " +
  "former_hash, former_until";

/** A row of `keys`. */
interface KeyRow {
  id: string;
  name: string;
  hash: string;
  group_name: string;
  created_at: number;
  disabled: number;
  revoked_at: number | null;
  expires_at: number | null;
  last_used_at: number | null;
  rules: string;
  former_hash: string | null;
  former_until: number | null;
}

/** Opens the keys of a database that is up to date. */
export function openSqliteKeys(db: DatabaseSync): KeyStore {
  const insert = db.prepare(
    `INSERT INTO keys (${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  );
  const byHash = db.prepare(`SELECT ${COLUMNS} FROM keys WHERE hash = ?`);
  const byFormer = db.prepare(`SELECT ${COLUMNS} FROM keys WHERE former_hash = ? AND former_until > ?`);
  const all = db.prepare(`SELECT ${COLUMNS} FROM keys ORDER BY created_at, rowid`);
  const byId = db.prepare(`SELECT ${COLUMNS} FROM keys WHERE id = ? AND revoked_at IS NULL`);
  const update = db.prepare("UPDATE keys SET disabled = ?, group_name = ?, rules = ?, expires_at = ? WHERE id = ?");
  const revoke = db.prepare(
    `UPDATE keys SET revoked_at = ?, former_hash = NULL, former_until = NULL WHERE id = ? AND revoked_at IS NULL`,
  );
  const rotate = db.prepare(
    `UPDATE OR IGNORE keys SET former_hash = hash, former_until = ?, hash = ? WHERE id = ? AND revoked_at IS NULL
     AND NOT EXISTS (SELECT 1 FROM keys WHERE former_hash = ?)`,
  );
  const touch = db.prepare("UPDATE keys SET last_used_at = max(coalesce(last_used_at, 0), ?) WHERE id = ?");

  return {
    // deno-lint-ignore require-await -- what is thrown here must reject
    async add(key) {
      const { id, name, hash, group, createdAt, disabled, revokedAt = null, expiresAt = null, lastUsedAt = null } = key;
      const { rules, former } = key;
      return insert.run(
        id,
        name,
        hash,
        group,
        createdAt,
        Number(disabled),
        revokedAt,
        expiresAt,
        lastUsedAt,
        JSON.stringify(rules),
        former?.hash ?? null,
        former?.until ?? null,
      ).changes === 1;
    },
    // deno-lint-ignore require-await -- what is thrown here must reject
    async findByHash(hash, now) {
      const row = byHash.get(hash) ?? byFormer.get(hash, now);
      return row === undefined ? undefined : toRecord(row as unknown as KeyRow);
    },
    // deno-lint-ignore require-await -- what is thrown here must reject
    async list() {
      return all.all().map((row) => toRecord(row as unknown as KeyRow));
    },
    // deno-lint-ignore require-await -- what is thrown here must reject
    async change(id, { disabled, group, rules, expiresAt }) {
      const row = byId.get(id) as unknown as KeyRow | undefined;
      if (row === undefined) return false;
      update.run(
        disabled === undefined ? row.disabled : Number(disabled),
        group ?? row.group_name,
        rules === undefined ? row.rules : JSON.stringify(rules),
        expiresAt === undefined ? row.expires_at : expiresAt,
        id,
      );
      return true;
    },
    // deno-lint-ignore require-await -- what is thrown here must reject
    async revoke(id, at) {
      return revoke.run(at, id).changes === 1;
    },
    // deno-lint-ignore require-await -- what is thrown here must reject
    async rotate(id, { hash, until }) {
      return rotate.run(until, hash, id, hash).changes === 1;
    },
    // deno-lint-ignore require-await -- what is thrown here must reject
    async touch(used) {
      for (const [id, at] of used) touch.run(at, id);
    },
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
    ...(row.expires_at !== null && { expiresAt: row.expires_at }),
    ...(row.last_used_at !== null && { lastUsedAt: row.last_used_at }),
    rules: JSON.parse(row.rules),
    ...(row.former_hash !== null && row.former_until !== null && {
      former: { hash: row.former_hash, until: row.former_until },
    }),
  };
}
