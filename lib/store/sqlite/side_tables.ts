/** Opens the parts of a SQLite store besides keys and ledger. */
import type { DatabaseSync } from "node:sqlite";
import type { Store } from "../store.ts";
import { openSqliteAlerts } from "./alerts.ts";
import { endClaims, openSqliteAnswers } from "./answers.ts";
import { openSqliteOperators } from "./operators.ts";

/**
 * Opens answers, alerts and the state of operators of a migrated database.
 * @param options `now`: Unix time in milliseconds; `own`: true for the process that serves from it
 */
export function openSideTables(
  db: DatabaseSync,
  { now, own = false }: { now?: (() => number) | undefined; own?: boolean } = {},
): Pick<Store, "answers" | "alerts" | "operators"> {
  if (own) endClaims(db);
  return { answers: openSqliteAnswers(db, now), alerts: openSqliteAlerts(db), operators: openSqliteOperators(db) };
}
