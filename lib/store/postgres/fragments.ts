/** Parts of statements from SQL that SQLite reads, too. */
import type { SqlDialect, SqlText } from "../search_sql.ts";
import type { Sql } from "./client.ts";

/** The SQL of Postgres. */
export const DIALECT: SqlDialect = { position: "strpos", statusOfName: "split_part(name, E'\\n', 1)::integer" };

/** A part of a statement, with the values as its parameters. */
export function fragmentOf(sql: Sql, [text, ...values]: SqlText): ReturnType<Sql> {
  const strings = text.split("?");
  // The types of parameters follow from what they are compared with, so integers may be sent as text.
  const parameters = values.map((value) => typeof value === "bigint" ? value.toString() : value);
  return sql(Object.assign(strings, { raw: strings }), ...parameters);
}
