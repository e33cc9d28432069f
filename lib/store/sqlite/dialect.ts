/** SQL that is written for SQLite alone. */
import type { EntryFilter } from "../search.ts";
import type { SqlDialect, SqlText } from "../search_sql.ts";

/** SQLite's SQL. A cast to an integer reads the number that a text begins with. */
export const DIALECT: SqlDialect = { position: "instr", statusOfName: "CAST(name AS INTEGER)" };

/** The most selective index of single entries, and the condition that it serves. */
export function indexOf(
  { keyId, user }: Pick<EntryFilter, "keyId" | "user"> = {},
): { index: string; driving: SqlText } {
  if (user !== undefined) return { index: "entries_by_user", driving: ["end_user = ?", user] };
  if (keyId !== undefined) return { index: "entries_by_key", driving: ["key_id = ?", keyId] };
  return { index: "entries_by_time", driving: ["1"] };
}
