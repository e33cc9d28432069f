/** The answers in a Postgres database, which its nodes share. */
import { type AnswerRow, type AnswerStore, toAnswerRecord } from "../answers.ts";
import type { Sql } from "./client.ts";

/** Maximum number of rows that one call of `prune` deletes, and of bodies that it drops. */
const ROWS_PER_CALL = 20;

/** Opens the answers of a migrated database. */
export function openPostgresAnswers(sql: Sql): AnswerStore {
  return {
    async find(scope, key, reserve) {
      const [row] = await sql<AnswerRow[]>`
        SELECT scope, key, request_hash, status, headers, done_at,
          CASE WHEN body IS NOT NULL THEN bytes END AS body_bytes
        FROM answers WHERE scope = ${scope} AND key = ${key}`;
      const readBody = async () => {
        const [found] = await sql<{ body: Uint8Array<ArrayBuffer> | null }[]>`
          SELECT body FROM answers WHERE scope = ${scope} AND key = ${key}`;
        // Copied, because the driver returns a view of its receive buffer.
        return found?.body && new Uint8Array(found.body);
      };
      return row && await toAnswerRecord(row, readBody, reserve);
    },
    async put({ scope, key, requestHash, status, headers, body, doneAt }, { maxBytes, holder }) {
      // Locked, so that no other node takes over the claim meanwhile.
      await sql`
        WITH own AS MATERIALIZED (
          SELECT FROM answer_claims WHERE scope = ${scope} AND key = ${key} AND holder = ${holder} FOR UPDATE)
        SELECT put_answer(${scope}, ${key}, ${requestHash}, ${status}, ${JSON.stringify(headers)}, ${doneAt},
          ${body ?? null}::bytea, ${maxBytes}) FROM own`;
    },
    async claim({ scope, key, requestHash, holder }, forMs, after) {
      const [other] = await sql<{ other_hash: string; other_holder: string; is_over: boolean }[]>`
        SELECT other_hash, other_holder, is_over
        FROM claim_request(${scope}, ${key}, ${requestHash}, ${holder}, ${forMs}, ${after ?? null})`;
      if (other === undefined) return undefined;
      return { requestHash: other.other_hash, holder: other.other_holder, isOver: other.is_over };
    },
    async isClaimed(scope, key) {
      const found = await sql`
        SELECT 1 FROM answer_claims WHERE scope = ${scope} AND key = ${key} AND lease_until > clock_timestamp()`;
      return found.length > 0;
    },
    async release({ scope, key, holder }) {
      await sql`DELETE FROM answer_claims WHERE scope = ${scope} AND key = ${key} AND holder = ${holder}`;
    },
    async prune({ until, maxBytes, maxAnswers }) {
      const [row] = await sql<{ more: boolean }[]>`
        SELECT prune_answers(${until}, ${maxBytes}, ${maxAnswers}, ${ROWS_PER_CALL}) AS more`;
      return row?.more === true;
    },
  };
}
