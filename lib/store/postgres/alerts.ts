/** The alerts in a Postgres database, which its nodes share. */
import { type AlertStore, type ClaimedAlert, NEVER_MS } from "../alerts.ts";
import type { Sql } from "./client.ts";

/**
 * A start of a condition is ignored if another node has recorded an end that is later by at most this many milliseconds:
 * it belongs to the condition that has ended, and was delayed.
 */
const MAX_DELAY_MS = 5_000;

/** Opens the alerts of a migrated database. Nodes may use them concurrently, as each change is one statement. */
export function openPostgresAlerts(sql: Sql): AlertStore {
  return {
    async add({ id, at, body, subject, begins, repeatMs = NEVER_MS, rememberUntil, isSent }) {
      const [row] = await sql<{ is_taken: boolean; changed: number }[]>`
        WITH begun AS (
          INSERT INTO alert_states AS s (subject, active, at, remember_until)
          SELECT ${subject}, true, ${at}::bigint, ${rememberUntil}::bigint
          WHERE ${begins}::boolean AND NOT EXISTS (SELECT FROM alerts WHERE id = ${id})
          ON CONFLICT (subject) DO UPDATE SET active = true, at = excluded.at, remember_until = excluded.remember_until
          WHERE NOT s.active AND s.at NOT BETWEEN ${at + 1}::bigint AND ${at + MAX_DELAY_MS}::bigint
            OR s.at NOT BETWEEN ${at - repeatMs + 1}::bigint AND ${at + repeatMs}::bigint
          RETURNING 1
        ), ended AS (
          UPDATE alert_states SET active = false, at = ${at}::bigint, remember_until = ${rememberUntil}::bigint
          WHERE NOT ${begins}::boolean AND subject = ${subject} AND active
            AND NOT EXISTS (SELECT FROM alerts WHERE id = ${id})
          RETURNING 1
        ), changed AS (
          SELECT FROM begun UNION ALL SELECT FROM ended
        ), added AS (
          INSERT INTO alerts (id, at, body, state, attempts, due_at, subject)
          SELECT ${id}, ${at}::bigint, ${body}, 'pending', 0, ledger_clock(), ${subject} FROM changed WHERE ${isSent}::boolean
        )
        SELECT EXISTS (SELECT FROM alerts WHERE id = ${id}) AS is_taken, (SELECT count(*)::int FROM changed) AS changed`;
      if (row === undefined || row.is_taken) return "taken";
      return row.changed > 0 ? "added" : "known";
    },
    async claim(leaseMs) {
      const [row] = await sql<ClaimedAlert[]>`
        UPDATE alerts SET attempts = attempts + 1, due_at = ledger_clock() + ${leaseMs}::bigint
        WHERE id = (
          SELECT id FROM alerts AS a WHERE state = 'pending' AND due_at <= (SELECT ledger_clock()) AND NOT EXISTS (
            SELECT FROM alerts WHERE state = 'pending' AND subject = a.subject AND nr < a.nr
          ) ORDER BY at, nr LIMIT 1 FOR UPDATE SKIP LOCKED
        ) RETURNING id, body, attempts`;
      return row;
    },
    async finish({ id, attempts }, state) {
      await sql`UPDATE alerts SET state = ${state} WHERE id = ${id} AND attempts = ${attempts}`;
    },
    async retry({ id, attempts }, afterMs) {
      await sql`
        UPDATE alerts SET due_at = ledger_clock() + ${Math.round(afterMs)}::bigint
        WHERE id = ${id} AND attempts = ${attempts}`;
    },
    async prune({ until, now }) {
      await sql`DELETE FROM alerts WHERE state <> 'pending' AND at < ${until}`;
      await sql`DELETE FROM alert_states WHERE remember_until < ${now}`;
    },
  };
}
