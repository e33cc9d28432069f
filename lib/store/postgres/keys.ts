/** The API keys in a Postgres database. */
import { type KeyRow, toKeyRecord } from "../key_row.ts";
import type { KeyRecord, KeyStore } from "../keys.ts";
import { type ChangeAction, type ChangeOrigin, keyChange } from "../operators.ts";
import type { Connection, Sql } from "./client.ts";
import { isStorableText, textArray } from "./ledger_texts.ts";
import { insertChange } from "./operators.ts";

/** A row of `keys` with the number of its last change. */
type ChangedKeyRow = KeyRow & { changed: bigint };

/** A key that was read. */
export interface ReadKey {
  record: KeyRecord;
  /** Number of its last change. */
  changed: bigint;
}

/** Opens the keys of a migrated database. A call without an origin is one statement. */
export function openPostgresKeys(sql: Sql): KeyStore {
  return {
    add: (key, origin) => changeKey(sql, { id: key.id, action: "create_key", origin }, (tx) => insertKey(tx, key)),
    findByHash: async (hash, now) => (await findKey(sql, { hash, now }))?.record,
    async list() {
      return (await sql<ChangedKeyRow[]>`SELECT * FROM keys ORDER BY place`).map(toKeyRecord);
    },
    async summary(limit) {
      // One statement, so that counts and keys are consistent.
      const rows = await sql<(KeyRow & { total: number; in_use: number })[]>`
        WITH counts AS (
          SELECT count(*)::int AS total, (count(*) FILTER (WHERE revoked_at IS NULL))::int AS in_use FROM keys
        ), oldest AS (SELECT * FROM keys WHERE revoked_at IS NULL ORDER BY place LIMIT ${limit})
        SELECT * FROM counts LEFT JOIN oldest ON true ORDER BY place`;
      const { total = 0, in_use: inUse = 0 } = rows[0] ?? {};
      return { total, inUse, oldest: rows.slice(0, Math.min(inUse, limit)).map(toKeyRecord) };
    },
    async page({ after, limit }) {
      const rows = await sql<(KeyRow & { place: bigint })[]>`
        SELECT * FROM keys WHERE place > ${after} ORDER BY place LIMIT ${limit}`;
      const keys = rows.map(toKeyRecord);
      return rows.length < limit ? { keys } : { keys, next: Number(rows.at(-1)?.place) };
    },
    async find(nameOrId) {
      // Postgres would reject such a text, and no key can have it as a name.
      if (!isStorableText(nameOrId)) return undefined;
      const [row] = await sql<ChangedKeyRow[]>`
        SELECT * FROM keys WHERE id = ${nameOrId} OR name = ${nameOrId}
        ORDER BY id = ${nameOrId} DESC, revoked_at IS NULL DESC, place DESC LIMIT 1`;
      return row === undefined ? undefined : toKeyRecord(row);
    },
    async findIds(ids) {
      const rows = await sql<KeyRow[]>`SELECT * FROM keys WHERE id = ANY (${textArray(sql, ids)})`;
      return rows.map(toKeyRecord);
    },
    change: (id, { disabled, group, rules, expiresAt, seen }, origin) =>
      changeKey(sql, { id, action: "change_key", origin }, async (tx) => {
        const { count } = await tx`
        UPDATE keys SET disabled = coalesce(${disabled ?? null}, disabled),
          group_name = coalesce(${group ?? null}, group_name),
          rules = coalesce(${rules === undefined ? null : JSON.stringify(rules)}, rules),
          expires_at = CASE WHEN ${expiresAt !== undefined}::boolean THEN ${expiresAt ?? null} ELSE expires_at END
        WHERE id = ${id} AND revoked_at IS NULL AND (${seen === undefined}::boolean OR
          group_name = ${seen?.group ?? null} AND rules = ${JSON.stringify(seen?.rules ?? null)} AND
          expires_at IS NOT DISTINCT FROM ${seen?.expiresAt ?? null})`;
        return count === 1;
      }),
    revoke: (id, at, origin) =>
      changeKey(sql, { id, action: "revoke_key", origin }, async (tx) => {
        const { count } = await tx`
          UPDATE keys SET revoked_at = ${at}, former_hash = NULL, former_until = NULL
          WHERE id = ${id} AND revoked_at IS NULL`;
        return count === 1;
      }),
    rotate: (id, { hash, until, from = null }, origin) =>
      changeKey(sql, { id, action: "rotate_key", origin }, async (tx) => {
        const { count } = await tx`
          UPDATE keys SET former_hash = hash, former_until = ${until}, hash = ${hash}
          WHERE id = ${id} AND revoked_at IS NULL AND hash <> ${hash} AND hash = coalesce(${from}, hash)`;
        return count === 1;
      }),
    async touch(used) {
      // Locked in a fixed order, so that nodes that record the same keys cannot deadlock.
      await sql`
        WITH noted AS MATERIALIZED (
          SELECT keys.id, used.value::bigint AS at
          FROM keys JOIN json_each_text(${
        JSON.stringify(Object.fromEntries(used))
      }::text::json) AS used ON used.key = keys.id
          WHERE used.value::bigint > coalesce(last_used_at, -1)
          ORDER BY keys.id FOR NO KEY UPDATE OF keys
        )
        UPDATE keys SET last_used_at = greatest(last_used_at, noted.at) FROM noted WHERE keys.id = noted.id`;
    },
  };
}

/** Changes one key, and logs the change in the same transaction. A change without an origin is not logged. */
async function changeKey(
  sql: Sql,
  { id, action, origin }: { id: string; action: ChangeAction; origin: ChangeOrigin | undefined },
  run: (sql: Connection) => Promise<boolean>,
): Promise<boolean> {
  if (origin === undefined) return await run(sql);
  return await sql.begin(async (tx) => {
    const [before] = await tx<KeyRow[]>`SELECT * FROM keys WHERE id = ${id} FOR UPDATE`;
    const isDone = await run(tx);
    const [after] = isDone ? await tx<KeyRow[]>`SELECT * FROM keys WHERE id = ${id}` : [];
    if (after === undefined) return isDone;
    const old = before === undefined ? {} : { before: toKeyRecord(before) };
    const logged = keyChange(origin, { action, ...old, after: toKeyRecord(after) });
    if (logged !== undefined) await insertChange(tx, logged);
    return isDone;
  });
}

/** Adds a key. Returns false if its id, name or hash exists. */
async function insertKey(sql: Connection, key: KeyRecord): Promise<boolean> {
  const { count } = await sql`
    INSERT INTO keys (id, name, hash, group_name, created_at, disabled, revoked_at, expires_at, last_used_at, rules,
      former_hash, former_until, changed)
    VALUES (${key.id}, ${key.name}, ${key.hash}, ${key.group}, ${key.createdAt}, ${key.disabled},
      ${key.revokedAt ?? null}, ${key.expiresAt ?? null}, ${key.lastUsedAt ?? null}, ${JSON.stringify(key.rules)},
      ${key.former?.hash ?? null}, ${key.former?.until ?? null}, 0)
    ON CONFLICT DO NOTHING`;
  return count === 1;
}

/** Finds the key with this hash, or with a previous hash that is valid at `now`. */
export async function findKey(sql: Sql, { hash, now }: { hash: string; now: number }): Promise<ReadKey | undefined> {
  const [row] = await sql<ChangedKeyRow[]>`
    SELECT * FROM keys WHERE hash = ${hash} OR (former_hash = ${hash} AND former_until > ${now})`;
  return row === undefined ? undefined : toReadKey(row);
}

/** Reads the most recently used keys that are not revoked, at most `limit`. */
export async function readUsedKeys(sql: Sql, limit: number): Promise<ReadKey[]> {
  return (await sql<ChangedKeyRow[]>`
    SELECT * FROM keys WHERE revoked_at IS NULL ORDER BY last_used_at DESC NULLS LAST, place DESC LIMIT ${limit}`)
    .map(toReadKey);
}

/** Reads the keys with changes after a change number. */
export async function readChangedKeys(sql: Sql, after: bigint): Promise<ReadKey[]> {
  return (await sql<ChangedKeyRow[]>`SELECT * FROM keys WHERE changed > ${after}`).map(toReadKey);
}

function toReadKey(row: ChangedKeyRow): ReadKey {
  return { record: toKeyRecord(row), changed: row.changed };
}
