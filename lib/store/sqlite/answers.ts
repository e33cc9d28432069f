/** Answers in the SQLite file. */
import type { DatabaseSync } from "node:sqlite";
import type { AnswerStore } from "../answers.ts";
import { openMemoryClaims } from "./claims.ts";

/** Rows forgotten by one call of `prune`. */
const ROWS_AT_ONCE = 200;

/** Pieces of bodies deleted by one call of `prune`. */
const PIECES_AT_ONCE = 16;

/** A row of `answers`. */
interface AnswerRow {
  id: number;
  scope: string;
  key: string;
  request_hash: string;
  status: number;
  headers: string;
  bytes: number;
  kept: number;
  done_at: number;
}

/** Opens the answers of a database that is up to date. */
export function openSqliteAnswers(db: DatabaseSync): AnswerStore {
  const find = db.prepare(
    `SELECT id, scope, key, request_hash, status, headers, bytes, kept, done_at
     FROM answers WHERE scope = ? AND key = ? AND sealed = 1`,
  );
  const insert = db.prepare(
    `INSERT INTO answers (scope, key, request_hash, status, headers, bytes, kept, done_at, sealed)
     VALUES (?, ?, ?, ?, ?, ?, ? AND (SELECT coalesce(sum(bytes), 0) FROM answers WHERE kept = 1) <= ?, ?, 0)
     RETURNING id, kept`,
  );
  const insertPiece = db.prepare("INSERT INTO answer_pieces (answer, part, bytes) VALUES (?, ?, ?)");
  const piece = db.prepare("SELECT bytes FROM answer_pieces WHERE answer = ? AND part = ?");
  const deleteOlder = db.prepare(
    `DELETE FROM answers WHERE sealed = 1
     AND (scope, key) = (SELECT scope, key FROM answers AS new WHERE new.id = ?)`,
  );
  const seal = db.prepare("UPDATE answers SET sealed = 1 WHERE id = ?");
  const sum = db.prepare("SELECT coalesce(sum(bytes), 0) AS bytes FROM answers WHERE kept = 1");
  const forgetUntil = db.prepare(
    `DELETE FROM answers WHERE id IN (SELECT id FROM answers WHERE done_at <= ? LIMIT ${ROWS_AT_ONCE})`,
  );
  const forgetMore = db.prepare(
    `DELETE FROM answers WHERE id IN (
       SELECT id FROM answers ORDER BY id
       LIMIT min(${ROWS_AT_ONCE}, max(0, (SELECT count(*) FROM answers) - ?)))`,
  );
  const oldest = db.prepare(
    `SELECT id, bytes FROM answers WHERE kept = 1 AND sealed = 1 ORDER BY id LIMIT ${ROWS_AT_ONCE}`,
  );
  const dropBody = db.prepare("UPDATE answers SET kept = 0 WHERE id = ?");
  const deletePieces = db.prepare(
    `DELETE FROM answer_pieces WHERE rowid IN (
       SELECT rowid FROM answer_pieces WHERE answer NOT IN (SELECT id FROM answers WHERE kept = 1)
       LIMIT ${PIECES_AT_ONCE})`,
  );

  function keptBytes(): number {
    return Number(sum.get()?.bytes);
  }

  /** Returns how many bodies went. */
  function dropBodies(maxBytes: number): number {
    let excess = keptBytes() - maxBytes;
    if (excess <= 0) return 0;
    let count = 0;
    for (const row of oldest.all()) {
      if (excess <= 0) break;
      dropBody.run(Number(row.id));
      excess -= Number(row.bytes);
      count++;
    }
    return count;
  }

  return {
    // One process serves from the file.
    ...openMemoryClaims(),
    // deno-lint-ignore require-await -- what is thrown here must reject
    async find(scope, key) {
      const found = find.get(scope, key);
      if (found === undefined) return undefined;
      const { request_hash, done_at, headers, kept, ...row } = found as unknown as AnswerRow;
      return { ...row, requestHash: request_hash, headers: JSON.parse(headers), kept: kept === 1, doneAt: done_at };
    },
    // deno-lint-ignore require-await -- what is thrown here must reject
    async begin({ scope, key, requestHash, status, headers, bytes, kept, doneAt }, { maxBytes }) {
      const written = JSON.stringify(headers);
      const room = maxBytes - bytes;
      const row = insert.get(scope, key, requestHash, status, written, bytes, Number(kept), room, doneAt);
      return { id: Number(row?.id), kept: row?.kept === 1 };
    },
    // deno-lint-ignore require-await -- what is thrown here must reject
    async write(id, index, bytes) {
      insertPiece.run(id, index, bytes);
    },
    // deno-lint-ignore require-await -- what is thrown here must reject
    async seal(id) {
      atomically(db, () => {
        deleteOlder.run(id);
        seal.run(id);
      });
    },
    // SQLite gives out memory of its own, never a view of something larger.
    // deno-lint-ignore require-await -- what is thrown here must reject
    async read(id, index) {
      return piece.get(id, index)?.bytes as Uint8Array<ArrayBuffer> | undefined;
    },
    // deno-lint-ignore require-await -- what is thrown here must reject
    async keptBytes() {
      return keptBytes();
    },
    // deno-lint-ignore require-await -- what is thrown here must reject
    async prune({ until, maxBytes, maxAnswers }) {
      let more = false;
      atomically(db, () => {
        const forgotten = Number(forgetUntil.run(until).changes) + Number(forgetMore.run(maxAnswers).changes);
        const dropped = dropBodies(maxBytes);
        const deleted = Number(deletePieces.run().changes);
        more = forgotten >= ROWS_AT_ONCE || dropped === ROWS_AT_ONCE || deleted === PIECES_AT_ONCE;
      });
      return more;
    },
  };
}

function atomically(db: DatabaseSync, work: () => void): void {
  db.exec("BEGIN IMMEDIATE");
  try {
    work();
    db.exec("COMMIT");
  } catch (error) {
    db.exec("ROLLBACK");
    throw error;
  }
}
