/** Opens the parts of a SQLite store besides keys and ledger. */
import type { DatabaseSync } from "node:sqlite";
import type { Store } from "../store.ts";
import { openSqliteAlerts } from "./alerts.ts";
import { endClaims, openSqliteAnswers } from "./answers.ts";
import { openSqliteOperators } from "./operators.ts";

/** Options of the tables beside keys and ledger. */
export interface SideTableOptions {
  /** Unix time in milliseconds. */
  now?: () => number;
  /** True for the process that serves from the file: claims of processes before it have ended. */
  own?: boolean;
}

/** Opens answers, alerts and the state of operators of a migrated database. */
export function openSideTables(
  db: DatabaseSync,
  { now, own = false }: SideTableOptions = {},
): Pick<Store, "answers" | "alerts" | "operators"> {
  if (own) endClaims(db);
  return { answers: openSqliteAnswers(db, now), alerts: openSqliteAlerts(db), operators: openSqliteOperators(db) };
}
