/** Answers in a Postgres database, for all its nodes. */
import type { AnswerStore } from "../answers.ts";
import type { Sql } from "./client.ts";

/** Answers forgotten, or whose bodies are dropped, by one call of `prune`. */
const ROWS_AT_ONCE = 20;

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
