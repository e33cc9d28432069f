/** The state of operators in a Postgres database, which its nodes share. */
import { type ChangeRow, type LoggedChange, type OperatorStore, toChangeRecord, toChangeValues } from "../operators.ts";
import type { Connection, Sql } from "./client.ts";

/** Logs a change. @param sql a transaction, to log in it */
export async function insertChange(sql: Connection, change: LoggedChange): Promise<void> {
  const [at, author, address, requestId, action, subject, before, after] = toChangeValues(change);
  await sql`
    INSERT INTO change_log (at, author, address, request_id, action, subject, before_values, after_values)
    VALUES (${at}, ${author ?? null}, ${address ?? null}, ${requestId ?? null}, ${action ?? null}, ${subject ?? null},
      ${before ?? null}, ${after ?? null})`;
}

/** Opens the state of operators of a migrated database. */
export function openPostgresOperators(sql: Sql): OperatorStore {
  return {
    logChange: (change) => insertChange(sql, change),
    async changes({ before = Number.MAX_SAFE_INTEGER, requestId, limit }) {
      const rows = await sql<ChangeRow[]>`
        SELECT * FROM change_log
        WHERE seq < ${before} ${requestId === undefined ? sql`` : sql`AND request_id = ${requestId}`}
        ORDER BY seq DESC LIMIT ${limit}`;
      return rows.map(toChangeRecord);
    },
    async pruneChanges(before) {
      // The first statement locks the row of the start, so that nodes prune one after the other.
      await sql.begin(async (tx) => {
        await tx`UPDATE change_log_start SET at = ${before} WHERE at < ${before}`;
        await tx`DELETE FROM change_log WHERE at < ${before}`;
      });
    },
    async addSignInLink({ id, expiresAt }, now) {
      await sql`
        WITH gone AS (DELETE FROM sign_in_links WHERE expires_at <= ${now})
        INSERT INTO sign_in_links (hash, expires_at) VALUES (${id}, ${expiresAt})`;
    },
    async takeSignInLink(hash, now) {
      const { count } = await sql`DELETE FROM sign_in_links WHERE hash = ${hash} AND expires_at > ${now}`;
      return count === 1;
    },
    async endSession({ id, expiresAt }, now) {
      await sql`
        WITH gone AS (DELETE FROM ended_sessions WHERE expires_at <= ${now})
        INSERT INTO ended_sessions (id, expires_at) VALUES (${id}, ${expiresAt}) ON CONFLICT DO NOTHING`;
    },
    async endedSessions(now) {
      const rows = await sql<{ id: string; expires_at: bigint }[]>`
        SELECT id, expires_at FROM ended_sessions WHERE expires_at > ${now}`;
      return rows.map(({ id, expires_at }) => ({ id, expiresAt: Number(expires_at) }));
    },
  };
}
