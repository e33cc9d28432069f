/** The sums of end users with budgets in a SQLite database. */
import type { DatabaseSync } from "node:sqlite";
import { compareValues } from "../../compare_values.ts";
import {
  type Entry,
  type LedgerStore,
  MAX_PERIOD_DAYS,
  readUserAccount,
  type Spender,
  type UserSum,
} from "../ledger.ts";

/** Rows that are read between two pauses: about a millisecond of work. */
const ROWS_PER_STEP = 1_000;

/** Maximum number of sums that one call deletes. */
const PRUNED_PER_CALL = 500;

/** The sums of end users of a database. */
export interface UserSumRows {
  /** Adds entries. Must be called within the transaction that writes them. */
  add(entries: readonly Entry[]): void;
  /** Returns the charged amount of an end user in a period. */
  charged(spender: Pick<Spender, "id" | "since">): bigint;
  /** Implements `LedgerStore.userSums`. */
  after(...of: Parameters<LedgerStore["userSums"]>): UserSum[];
  /** Deletes some sums of periods that ended before a day. Returns true if there may be more. */
  prune(beforeDay: number): boolean;
}

/** A row of `user_sums`. */
interface Row {
  since: number;
  key_id: string;
  end_user: string;
  cost: string;
}

const COLUMNS = "since, key_id, end_user, CAST(cost AS TEXT) AS cost";

/** Opens the sums of end users of a migrated database. */
export function openUserSumRows(db: DatabaseSync): UserSumRows {
  const add = db.prepare(
    `INSERT INTO user_sums (since, key_id, end_user, cost) VALUES (?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET cost = cost + excluded.cost`,
  );
  const charged = db.prepare(
    "SELECT CAST(cost AS TEXT) AS cost FROM user_sums WHERE (since, key_id, end_user) = (?, ?, ?)",
  );
  const after = db.prepare(
    `SELECT ${COLUMNS} FROM user_sums WHERE (since, key_id, end_user) > (?, ?, ?)
     ORDER BY since, key_id, end_user LIMIT ?`,
  );
  const prune = db.prepare(
    `DELETE FROM user_sums WHERE (since, key_id, end_user) IN (
       SELECT since, key_id, end_user FROM user_sums WHERE since > 0 AND since <= ? LIMIT ${PRUNED_PER_CALL})`,
  );
  return {
    add(entries) {
      for (const { cost, keyId, details } of entries) {
        if (cost > 0n && details?.user_since !== undefined) {
          add.run(details.user_since, keyId, details.user ?? "", cost);
        }
      }
    },
    charged({ id, since }) {
      const { keyId, user } = readUserAccount(id);
      return BigInt(String(charged.get(since, keyId, user)?.cost ?? 0));
    },
    after: ({ after: { since, keyId, user } = { since: -1, keyId: "", user: "" }, limit }) =>
      after.all(since, keyId, user, limit).map(toSum),
    prune: (beforeDay) => prune.run(beforeDay - MAX_PERIOD_DAYS).changes === PRUNED_PER_CALL,
  };
}

/** Prepares `LedgerStore.topUsers`, with pauses. */
export function prepareTopUsers(
  db: DatabaseSync,
): (of: Parameters<LedgerStore["topUsers"]>[0]) => Generator<void, UserSum[]> {
  const ofAll = db.prepare(
    `SELECT ${COLUMNS} FROM user_sums WHERE since = ? AND (key_id, end_user) > (?, ?)
     ORDER BY key_id, end_user LIMIT ${ROWS_PER_STEP}`,
  );
  const ofKey = db.prepare(
    `SELECT ${COLUMNS} FROM user_sums WHERE since = ? AND key_id = ? AND end_user >= ?
     ORDER BY end_user LIMIT ${ROWS_PER_STEP}`,
  );
  return function* ({ since, keyId, limit }) {
    let top: UserSum[] = [];
    let rows = keyId === undefined ? ofAll.all(since, "", "") : ofKey.all(since, keyId, "");
    for (;;) {
      const sums = rows.map(toSum);
      top = [...top, ...sums].sort((one, other) => compareValues(other.charged, one.charged)).slice(0, limit);
      const last = sums.at(-1);
      if (last === undefined || sums.length < ROWS_PER_STEP) return top;
      yield;
      // The next text in order after a text is the same text followed by NUL.
      rows = keyId === undefined ? ofAll.all(since, last.keyId, last.user) : ofKey.all(since, keyId, `${last.user}\0`);
    }
  };
}

function toSum(row: unknown): UserSum {
  const { since, key_id: keyId, end_user: user, cost } = row as Row;
  return { since, keyId, user, charged: BigInt(cost) };
}
