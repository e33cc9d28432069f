/** Makes parts of Postgres statements from SQL that both databases use. */
import type { SqlDialect, SqlText } from "../search_sql.ts";
import type { Sql } from "./client.ts";

/** The expressions of Postgres. */
export const DIALECT: SqlDialect = { position: "strpos", statusOfName: "split_part(name, E'\\n', 1)::integer" };

/** Returns a part of a statement, with the values as its parameters. */
export function fragmentOf(sql: Sql, [text, ...values]: SqlText): ReturnType<Sql> {
  const strings = text.split("?");
  // Postgres infers the type of a parameter from what it is compared with, so integers may be sent as text.
  const parameters = values.map((value) => typeof value === "bigint" ? value.toString() : value);
  return sql(Object.assign(strings, { raw: strings }), ...parameters);
}
