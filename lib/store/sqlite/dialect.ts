/** The SQL that only SQLite needs. */
import type { EntryFilter } from "../search.ts";
import type { SqlDialect, SqlText } from "../search_sql.ts";

/** The expressions of SQLite. A cast to an integer reads the number with which a text begins. */
export const DIALECT: SqlDialect = { position: "instr", statusOfName: "CAST(name AS INTEGER)" };

/** Returns the most selective index of `entries` for a filter, and the condition for which it is used. */
export function entryIndexFor(
  { keyId, user }: Pick<EntryFilter, "keyId" | "user"> = {},
): { index: string; condition: SqlText } {
  if (user !== undefined) return { index: "entries_by_user", condition: ["end_user = ?", user] };
  if (keyId !== undefined) return { index: "entries_by_key", condition: ["key_id = ?", keyId] };
  return { index: "entries_by_time", condition: ["1"] };
}
