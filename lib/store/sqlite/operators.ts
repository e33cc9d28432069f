// deno-lint-ignore-file require-await -- calls that throw must reject
/** The state of operators in a SQLite database. */
import type { DatabaseSync } from "node:sqlite";
import {
  type ChangeRow,
  type ExpiringId,
  type LoggedChange,
  type OperatorStore,
  toChangeRecord,
  toChangeValues,
} from "../operators.ts";
import { atomically } from "./transaction.ts";

/** Returns a function that logs a change. */
export function prepareChangeLog(db: DatabaseSync): (change: LoggedChange) => void {
  const insert = db.prepare(
    `INSERT INTO change_log (at, author, address, request_id, action, subject, before_values, after_values)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return (change) => void insert.run(...toChangeValues(change));
}

/** Opens the state of operators of a migrated database. */
export function openSqliteOperators(db: DatabaseSync): OperatorStore {
  const logChange = prepareChangeLog(db);
  const changes = db.prepare(
    `SELECT * FROM change_log WHERE seq < :before AND (:requestId IS NULL OR request_id = :requestId)
     ORDER BY seq DESC LIMIT :limit`,
  );
  const moveStart = db.prepare("UPDATE change_log_start SET at = :before WHERE at < :before");
  const remove = db.prepare("DELETE FROM change_log WHERE at < ?");
  const addLink = db.prepare("INSERT INTO sign_in_links (hash, expires_at) VALUES (?, ?)");
  const takeLink = db.prepare("DELETE FROM sign_in_links WHERE hash = ? AND expires_at > ?");
  const pruneLinks = db.prepare("DELETE FROM sign_in_links WHERE expires_at <= ?");
  const end = db.prepare("INSERT INTO ended_sessions (id, expires_at) VALUES (?, ?) ON CONFLICT DO NOTHING");
  const ended = db.prepare("SELECT id, expires_at AS expiresAt FROM ended_sessions WHERE expires_at > ?");
  const pruneEnded = db.prepare("DELETE FROM ended_sessions WHERE expires_at <= ?");

  return {
    async logChange(change) {
      logChange(change);
    },
    async changes({ before = Number.MAX_SAFE_INTEGER, requestId = null, limit }) {
      return changes.all({ before, requestId, limit }).map((row) => toChangeRecord(row as unknown as ChangeRow));
    },
    async pruneChanges(before) {
      atomically(db, () => {
        moveStart.run({ before });
        remove.run(before);
      });
    },
    async addSignInLink({ id, expiresAt }, now) {
      pruneLinks.run(now);
      addLink.run(id, expiresAt);
    },
    async takeSignInLink(hash, now) {
      return takeLink.run(hash, now).changes === 1;
    },
    async endSession({ id, expiresAt }, now) {
      pruneEnded.run(now);
      end.run(id, expiresAt);
    },
    async endedSessions(now) {
      return ended.all(now) as unknown as ExpiringId[];
    },
  };
}
