/** Reads and prunes the sums of end users with budgets, and prunes other sums. */
import { type LedgerStore, MAX_PERIOD_DAYS, type UserSum } from "../ledger.ts";
import { BLOCK } from "../sums.ts";
import type { Sql } from "./client.ts";

/** Maximum number of sums that one call deletes from a table. */
const PRUNED_PER_CALL = 500;

/** A row of `user_sums`. */
interface Row {
  since: bigint;
  key_id: string;
  end_user: string;
  cost: string;
}

/** Implements `LedgerStore.topUsers`. */
export async function readTopUsers(
  sql: Sql,
  { since, keyId, limit }: Parameters<LedgerStore["topUsers"]>[0],
): Promise<UserSum[]> {
  const keyCondition = keyId === undefined ? sql`` : sql`AND key_id = ${keyId}`;
  const rows = await sql<Row[]>`
    SELECT since, key_id, end_user, cost::text FROM user_sums WHERE since = ${since} ${keyCondition}
    ORDER BY user_sums.cost DESC, key_id, end_user LIMIT ${limit}`;
  return rows.map(toSum);
}

/** Implements `LedgerStore.userSums`. */
export async function readUserSums(
  sql: Sql,
  { after: { since, keyId, user } = { since: -1, keyId: "", user: "" }, limit }: Parameters<LedgerStore["userSums"]>[0],
): Promise<UserSum[]> {
  const rows = await sql<Row[]>`
    SELECT since, key_id, end_user, cost::text FROM user_sums
    WHERE (since, key_id, end_user) > (${since}, ${keyId}, ${user})
    ORDER BY since, key_id, end_user LIMIT ${limit}`;
  return rows.map(toSum);
}

/** Deletes some sums of periods that ended before a day. Returns true if there may be more. */
export async function pruneUserSums(sql: Sql, beforeDay: number): Promise<boolean> {
  const { count } = await sql`
    DELETE FROM user_sums WHERE (since, key_id, end_user) IN (
      SELECT since, key_id, end_user FROM user_sums WHERE since > 0 AND since <= ${beforeDay - MAX_PERIOD_DAYS}
      LIMIT ${PRUNED_PER_CALL})`;
  return count === PRUNED_PER_CALL;
}

/** Deletes some of the sums and blocks whose entries were pruned. Returns true if there may be more. */
export async function pruneSums(sql: Sql): Promise<boolean> {
  const users = await sql`
    DELETE FROM user_days WHERE (day, key_id, group_name, model, end_user, tags) IN (
      SELECT day, key_id, group_name, model, end_user, tags FROM user_days
      WHERE day <= (SELECT day FROM ledger_start) LIMIT ${PRUNED_PER_CALL})`;
  const blocks = await sql`
    DELETE FROM entry_blocks WHERE block = (SELECT min(block) FROM entry_blocks)
      AND block < (SELECT seq / ${BLOCK}::bigint FROM ledger_start)`;
  return users.count === PRUNED_PER_CALL || blocks.count > 0;
}

function toSum({ since, key_id: keyId, end_user: user, cost }: Row): UserSum {
  return { since: Number(since), keyId, user, charged: BigInt(cost) };
}
