/** The parts of a SQLite store beside keys and the ledger. */
import type { DatabaseSync } from "node:sqlite";
import type { Store } from "../store.ts";
import { openSqliteAlerts } from "./alerts.ts";
import { openSqliteAnswers } from "./answers.ts";
import { openSqliteOperators } from "./operators.ts";

/** Opens them on a connection to a database that is up to date. */
export function openSideTables(db: DatabaseSync): Pick<Store, "answers" | "alerts" | "operators"> {
  return { answers: openSqliteAnswers(db), alerts: openSqliteAlerts(db), operators: openSqliteOperators(db) };
}
