/** The sums of end users with budgets in the SQLite file. */
import type { DatabaseSync } from "node:sqlite";
import { type Entry, type LedgerStore, readUserAccount, type Spender, type UserSum } from "../ledger.ts";

/** Rows that are read between two looks at the clock: about a millisecond of work. */
const ROWS_AT_ONCE = 1_000;

/** Sums that one call forgets. */
const PRUNED_AT_ONCE = 500;

/** Days of the longest period that ends. */
const LONGEST_PERIOD = 31;

/** The sums of a database. */
export interface UserSumRows {
  /** Adds entries. Within the transaction that enters them. */
  add(entries: readonly Entry[]): void;
  charged(spender: Pick<Spender, "id" | "since">): bigint;
  after(...of: Parameters<LedgerStore["userSums"]>): UserSum[];
  /** Forgets some sums of periods that are over before a day. True while there may be more. */
  prune(beforeDay: number): boolean;
}

interface Row {
  since: number;
  key_id: string;
  end_user: string;
  cost: string;
}

const COLUMNS = "since, key_id, end_user, CAST(cost AS TEXT) AS cost";

/** Opens the sums of a database that is up to date. */
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
       SELECT since, key_id, end_user FROM user_sums WHERE since > 0 AND since <= ? LIMIT ${PRUNED_AT_ONCE})`,
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
    prune: (beforeDay) => prune.run(beforeDay - LONGEST_PERIOD).changes === PRUNED_AT_ONCE,
  };
}

/** Finds the end users who spent most, a few rows at a time. */
export function prepareTopUsers(
  db: DatabaseSync,
): (of: Parameters<LedgerStore["topUsers"]>[0]) => Generator<void, UserSum[]> {
  const ofAll = db.prepare(
    `SELECT ${COLUMNS} FROM user_sums WHERE since = ? AND (key_id, end_user) > (?, ?)
     ORDER BY key_id, end_user LIMIT ${ROWS_AT_ONCE}`,
  );
  const ofKey = db.prepare(
    `SELECT ${COLUMNS} FROM user_sums WHERE since = ? AND key_id = ? AND end_user >= ?
     ORDER BY end_user LIMIT ${ROWS_AT_ONCE}`,
  );
  return function* ({ since, keyId, limit }) {
    let top: UserSum[] = [];
    let rows = keyId === undefined ? ofAll.all(since, "", "") : ofKey.all(since, keyId, "");
    for (;;) {
      const sums = rows.map(toSum);
      top = [...top, ...sums].sort((one, other) => compare(other.charged, one.charged)).slice(0, limit);
      const last = sums.at(-1);
      if (last === undefined || sums.length < ROWS_AT_ONCE) return top;
      yield;
      // No text lies between one and the same with a NUL.
      rows = keyId === undefined ? ofAll.all(since, last.keyId, last.user) : ofKey.all(since, keyId, `${last.user}\0`);
    }
  };
}

function toSum(row: unknown): UserSum {
  const { since, key_id: keyId, end_user: user, cost } = row as Row;
  return { since, keyId, user, charged: BigInt(cost) };
}

function compare(one: bigint, other: bigint): number {
  return one === other ? 0 : one < other ? -1 : 1;
}
