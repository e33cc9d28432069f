/** Reads durations of requests from single entries of a SQLite database. */
import type { DatabaseSync } from "node:sqlite";
import type { Durations, DurationSpan } from "../ledger.ts";
import { FAILED_SQL } from "../search.ts";

/** Prepares `LedgerStore.durations` of a migrated database, with a pause after each period. */
export function prepareDurations(db: DatabaseSync): (spans: readonly DurationSpan[]) => Generator<void, Durations[]> {
  const statement = db.prepare(
    `SELECT CASE WHEN ${FAILED_SQL} THEN NULL ELSE first_ms END AS first, total_ms AS total
     FROM entries INDEXED BY entries_by_time WHERE at >= ? AND at < ? ORDER BY at, seq LIMIT ?`,
  );
  return function* (spans) {
    const result: Durations[] = [];
    for (const { since, until, limit } of spans) {
      const durations: Durations = { read: 0, answered: [] };
      for (const { first, total } of statement.all(since, until, limit)) {
        durations.read++;
        if (first !== null) durations.answered.push({ firstMs: Number(first), totalMs: Number(total) });
      }
      result.push(durations);
      yield;
    }
    return result;
  };
}
