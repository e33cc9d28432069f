/** Opens the parts of a SQLite store besides keys and ledger. */
import type { DatabaseSync } from "node:sqlite";
import type { Store } from "../store.ts";
import { openSqliteAlerts } from "./alerts.ts";
import { openSqliteAnswers } from "./answers.ts";
import { openSqliteOperators } from "./operators.ts";

/** Opens answers, alerts and the state of operators of a migrated database. @param now Unix time in milliseconds */
export function openSideTables(
  db: DatabaseSync,
  now?: () => number,
): Pick<Store, "answers" | "alerts" | "operators"> {
  return { answers: openSqliteAnswers(db, now), alerts: openSqliteAlerts(db), operators: openSqliteOperators(db) };
}
