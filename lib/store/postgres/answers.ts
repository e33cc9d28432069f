/** Answers in a Postgres database, for all its nodes. */
import type { AnswerStore } from "../answers.ts";
import type { Sql } from "./client.ts";

/** Answers forgotten, or whose bodies are dropped, by one call of `prune`. */
const ROWS_AT_ONCE = 20;

/** Tries to learn whose a claim is that goes just then. */
const CLAIM_TRIES = 5;

/** A row of `answers`. */
interface AnswerRow {
  id: bigint;
  scope: string;
  key: string;
  request_hash: string;
  status: number;
  headers: string;
  bytes: bigint;
  kept: boolean;
  done_at: bigint;
}

/** Opens the answers of a database that is up to date. */
export function openPostgresAnswers(sql: Sql): AnswerStore {
  /** They begin in the order in which they were asked for, whichever connection each gets. */
  let begun: Promise<unknown> = Promise.resolve();

  return {
    async find(scope, key) {
      const [row] = await sql<AnswerRow[]>`
        SELECT id, scope, key, request_hash, status, headers, bytes, kept, done_at
        FROM answers WHERE scope = ${scope} AND key = ${key} AND sealed`;
      if (row === undefined) return undefined;
      const { id, request_hash, bytes, done_at, headers, ...rest } = row;
      return {
        ...rest,
        id: Number(id),
        requestHash: request_hash,
        headers: JSON.parse(headers),
        bytes: Number(bytes),
        doneAt: Number(done_at),
      };
    },
    begin({ scope, key, requestHash, status, headers, bytes, kept, doneAt }, { maxBytes }) {
      const written = JSON.stringify(headers);
      const beginning = begun.then(async () => {
        const [row] = await sql<{ begun: bigint; is_kept: boolean }[]>`
          SELECT begun, is_kept FROM begin_answer(${scope}, ${key}, ${requestHash}, ${status}, ${written}, ${bytes},
            ${doneAt}, ${kept}, ${maxBytes})`;
        return { id: Number(row?.begun), kept: row?.is_kept === true };
      });
      begun = beginning.catch(() => {});
      return beginning;
    },
    async write(id, index, piece) {
      // Nothing is left to write to where the answer was forgotten, or its body dropped, meanwhile.
      await sql`
        INSERT INTO answer_pieces (answer, part, bytes)
        SELECT id, ${index}, ${piece} FROM answers WHERE id = ${id} AND kept FOR KEY SHARE`;
    },
    async seal(id) {
      await sql`SELECT seal_answer(${id})`;
    },
    async read(id, index) {
      const [row] = await sql<{ bytes: Uint8Array }[]>`
        SELECT bytes FROM answer_pieces WHERE answer = ${id} AND part = ${index}`;
      // The driver gives out a view of what it has read.
      return row === undefined ? undefined : new Uint8Array(row.bytes);
    },
    async claim(claim, forMs) {
      const { scope, key, requestHash, holder } = claim;
      for (let tries = 0; tries < CLAIM_TRIES; tries++) {
        const taken = await sql`
          INSERT INTO answer_claims AS claims (scope, key, request_hash, holder, lease_until)
          VALUES (${scope}, ${key}, ${requestHash}, ${holder}, clock_timestamp() + ${forMs} * interval '1 ms')
          ON CONFLICT (scope, key) DO UPDATE
          SET request_hash = excluded.request_hash, holder = excluded.holder, lease_until = excluded.lease_until
          WHERE claims.holder = excluded.holder OR claims.lease_until <= clock_timestamp()
          RETURNING 1`;
        if (taken.length > 0) return undefined;
        const [other] = await sql<{ request_hash: string }[]>`
          SELECT request_hash FROM answer_claims
          WHERE scope = ${scope} AND key = ${key} AND lease_until > clock_timestamp()`;
        if (other !== undefined) return other.request_hash;
      }
      throw new Error("Cannot claim the request: others come and go");
    },
    async isClaimed(scope, key) {
      const found = await sql`
        SELECT 1 FROM answer_claims WHERE scope = ${scope} AND key = ${key} AND lease_until > clock_timestamp()`;
      return found.length > 0;
    },
    async release({ scope, key, holder }) {
      await sql`DELETE FROM answer_claims WHERE scope = ${scope} AND key = ${key} AND holder = ${holder}`;
    },
    async keptBytes() {
      const [row] = await sql<{ bytes: string }[]>`SELECT coalesce(sum(bytes), 0) AS bytes FROM answers WHERE kept`;
      return Number(row?.bytes);
    },
    async prune({ until, maxBytes, maxAnswers }) {
      const [row] = await sql<{ more: boolean }[]>`
        SELECT prune_answers(${until}, ${maxBytes}, ${maxAnswers}, ${ROWS_AT_ONCE}) AS more`;
      return row?.more === true;
    },
  };
}
