// deno-lint-ignore-file require-await -- calls that throw must reject
/** The answers in a SQLite database. */
import type { DatabaseSync } from "node:sqlite";
import { type AnswerRow, type AnswerStore, toAnswerRecord } from "../answers.ts";

/** Maximum number of rows that one call of `prune` deletes, and of bodies that it drops: a few milliseconds of work. */
const ROWS_PER_CALL = 20;

/**
 * Ends the leases of all claims, because the process that made them has ended. Whether their requests were charged is in
 * the ledger.
 */
export function endClaims(db: DatabaseSync): void {
  db.prepare("UPDATE answer_claims SET lease_until = min(lease_until, ?)").run(Date.now());
}

/** Opens the answers of a migrated database. @param now Unix time in milliseconds */
export function openSqliteAnswers(db: DatabaseSync, now: () => number = Date.now): AnswerStore {
  const find = db.prepare(
    `SELECT scope, key, request_hash, status, headers, done_at, iif(body IS NULL, NULL, bytes) AS body_bytes
     FROM answers WHERE scope = ? AND key = ?`,
  );
  const findBody = db.prepare("SELECT body FROM answers WHERE scope = ? AND key = ?");
  const put = db.prepare(
    `INSERT OR REPLACE INTO answers (scope, key, request_hash, status, headers, done_at, bytes, body)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const bytesOfOthers = db.prepare(
    `SELECT coalesce(sum(bytes), 0) AS bytes FROM answers
     WHERE body IS NOT NULL AND (scope, key) <> (:scope, :key)`,
  );
  const deleteOld = db.prepare(
    `DELETE FROM answers WHERE rowid IN (SELECT rowid FROM answers WHERE done_at <= ? LIMIT ${ROWS_PER_CALL})`,
  );
  const count = db.prepare("SELECT count(*) AS answers FROM answers");
  const deleteExcess = db.prepare(
    `DELETE FROM answers WHERE rowid IN (
       SELECT rowid FROM answers WHERE scope = (SELECT scope FROM answers GROUP BY scope ORDER BY count(*) DESC LIMIT 1)
       ORDER BY done_at, rowid LIMIT min(${ROWS_PER_CALL}, ?))`,
  );
  const bodyBytes = db.prepare("SELECT coalesce(sum(bytes), 0) AS bytes FROM answers WHERE body IS NOT NULL");
  // Drops the oldest bodies of the scope with the most bytes until the others fit.
  const dropBodies = db.prepare(
    `UPDATE answers SET body = NULL WHERE rowid IN (
       SELECT id FROM (
         SELECT rowid AS id, sum(bytes) OVER (ORDER BY done_at, rowid) - bytes AS before
         FROM answers WHERE body IS NOT NULL AND scope = (
           SELECT scope FROM answers WHERE body IS NOT NULL GROUP BY scope ORDER BY sum(bytes) DESC LIMIT 1)
         ORDER BY done_at, rowid LIMIT ${ROWS_PER_CALL})
       WHERE before < ?)`,
  );
  const claim = db.prepare(
    `INSERT INTO answer_claims (scope, key, request_hash, holder, lease_until)
     VALUES (:scope, :key, :requestHash, :holder, :until)
     ON CONFLICT DO UPDATE SET request_hash = excluded.request_hash, holder = excluded.holder,
       lease_until = excluded.lease_until
     WHERE holder = excluded.holder OR holder = :after AND lease_until <= :now`,
  );
  const claimed = db.prepare(
    "SELECT request_hash, holder, lease_until FROM answer_claims WHERE scope = ? AND key = ?",
  );
  const release = db.prepare("DELETE FROM answer_claims WHERE scope = ? AND key = ? AND holder = ?");
  const deleteClaims = db.prepare("DELETE FROM answer_claims WHERE lease_until <= ?");

  return {
    async claim({ scope, key, requestHash, holder }, forMs, after) {
      const values = {
        scope,
        key,
        requestHash,
        holder,
        until: Math.ceil(now() + forMs),
        after: after ?? null,
        now: now(),
      };
      if (claim.run(values).changes === 1) return undefined;
      const row = claimed.get(scope, key);
      return {
        requestHash: String(row?.request_hash),
        holder: String(row?.holder),
        isOver: Number(row?.lease_until) <= now(),
      };
    },
    async isClaimed(scope, key) {
      return Number(claimed.get(scope, key)?.lease_until ?? 0) > now();
    },
    async release({ scope, key, holder }) {
      release.run(scope, key, holder);
    },
    async find(scope, key, reserve) {
      const row = find.get(scope, key) as unknown as AnswerRow | undefined;
      const readBody = async () => findBody.get(scope, key)?.body as Uint8Array<ArrayBuffer> | null | undefined;
      return row && await toAnswerRecord(row, readBody, reserve);
    },
    async put({ scope, key, requestHash, status, headers, body, doneAt }, { maxBytes, holder }) {
      if (claimed.get(scope, key)?.holder !== holder) return;
      const bytes = body?.length ?? 0;
      const hasRoom = body !== undefined && Number(bytesOfOthers.get({ scope, key })?.bytes) + bytes <= maxBytes;
      put.run(scope, key, requestHash, status, JSON.stringify(headers), doneAt, bytes, hasRoom ? body : null);
    },
    async prune({ until, maxBytes, maxAnswers }) {
      deleteClaims.run(until);
      const old = deleteOld.run(until).changes;
      const excess = Number(count.get()?.answers) - maxAnswers;
      const deleted = excess > 0 ? deleteExcess.run(excess).changes : 0;
      const excessBytes = Number(bodyBytes.get()?.bytes) - maxBytes;
      const dropped = excessBytes > 0 ? dropBodies.run(excessBytes).changes : 0;
      return old === ROWS_PER_CALL || deleted > 0 && excess > deleted ||
        dropped > 0 && Number(bodyBytes.get()?.bytes) > maxBytes;
    },
  };
}
