// deno-lint-ignore-file require-await -- calls that throw must reject
/** The alerts in a SQLite database. */
import type { DatabaseSync } from "node:sqlite";
import { type AlertStore, type ClaimedAlert, MAX_ALERT_WAIT_MS, NEVER_MS } from "../alerts.ts";
import { atomically } from "./transaction.ts";

/** Opens the alerts of a migrated database. */
export function openSqliteAlerts(db: DatabaseSync): AlertStore {
  const isTaken = db.prepare("SELECT 1 FROM alerts WHERE id = ?");
  const begin = db.prepare(
    `INSERT INTO alert_states (subject, active, at, remember_until) VALUES (:subject, 1, :at, :until)
     ON CONFLICT (subject) DO UPDATE SET active = 1, at = excluded.at, remember_until = excluded.remember_until
     WHERE active = 0 OR at <= :repeat OR at > :ahead`,
  );
  const end = db.prepare(
    "UPDATE alert_states SET active = 0, at = :at, remember_until = :until WHERE subject = :subject AND active = 1",
  );
  const insert = db.prepare(
    "INSERT INTO alerts (id, at, body, state, attempts, due_at, subject) VALUES (?, ?, ?, 'pending', 0, ?, ?)",
  );
  // A later time was recorded before the clock was set back.
  const due = db.prepare(
    `SELECT id, body, attempts FROM alerts AS a
     WHERE state = 'pending' AND (due_at <= :now OR due_at > :now + ${MAX_ALERT_WAIT_MS}) AND NOT EXISTS (
       SELECT 1 FROM alerts WHERE state = 'pending' AND subject = a.subject AND rowid < a.rowid
     ) ORDER BY at, rowid LIMIT 1`,
  );
  const claim = db.prepare("UPDATE alerts SET attempts = attempts + 1, due_at = ? WHERE id = ?");
  const finish = db.prepare("UPDATE alerts SET state = ? WHERE id = ? AND attempts = ?");
  const retry = db.prepare("UPDATE alerts SET due_at = ? WHERE id = ? AND attempts = ?");
  const pruneAlerts = db.prepare("DELETE FROM alerts WHERE state <> 'pending' AND at < ?");
  const pruneStates = db.prepare("DELETE FROM alert_states WHERE remember_until < ?");

  return {
    async add({ id, at, body, subject, begins, repeatMs = NEVER_MS, rememberUntil: until, isSent }) {
      return atomically(db, () => {
        if (isTaken.get(id) !== undefined) return "taken";
        const { changes } = begins
          ? begin.run({ subject, at, until, repeat: at - repeatMs, ahead: at + repeatMs })
          : end.run({ subject, at, until });
        if (changes === 0) return "known";
        if (isSent) insert.run(id, at, body, Date.now(), subject);
        return "added";
      });
    },
    async claim(leaseMs) {
      // No transaction is needed, because only one process sends alerts.
      const alert = due.get({ now: Date.now() }) as ClaimedAlert | undefined;
      if (alert === undefined) return undefined;
      claim.run(Date.now() + leaseMs, alert.id);
      return { ...alert, attempts: alert.attempts + 1 };
    },
    async finish({ id, attempts }, state) {
      finish.run(state, id, attempts);
    },
    async retry({ id, attempts }, afterMs) {
      retry.run(Date.now() + Math.round(afterMs), id, attempts);
    },
    async prune({ until, now }) {
      pruneAlerts.run(until);
      pruneStates.run(now);
    },
  };
}
