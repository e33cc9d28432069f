/** Inserts many rows with few statements. */
import type { DatabaseSync } from "node:sqlite";

/** A value of a column. */
export type Value = number | bigint | string | null;

/** Rows of one statement: one among eight takes a fifth less than one alone, and more bring nothing. */
const ROWS_AT_ONCE = 8;

/**
 * Prepares `INSERT INTO … VALUES …`, for as many rows as there are each time.
 *
 * @param of the table, its columns, what happens to a row in conflict with another (`ON CONFLICT …`), and the values of a
 * row in the order of the columns, which it adds to those of the rows before
 * @returns false where some rows were not inserted: those before them are, and those after them may not be
 */
export function prepareInsert<Row>(
  db: DatabaseSync,
  { table, columns, onConflict, addValues }: {
    table: string;
    columns: readonly string[];
    onConflict: string;
    addValues: (values: Value[], row: Row) => void;
  },
): (rows: readonly Row[]) => boolean {
  const row = `(${columns.map(() => "?").join(", ")})`;
  const statements = new Map<number, ReturnType<DatabaseSync["prepare"]>>();

  function statementFor(count: number): ReturnType<DatabaseSync["prepare"]> {
    let statement = statements.get(count);
    if (statement === undefined) {
      const rows = new Array(count).fill(row).join(", ");
      statement = db.prepare(`INSERT INTO ${table} (${columns.join(", ")}) VALUES ${rows} ${onConflict}`);
      statements.set(count, statement);
    }
    return statement;
  }

  return (rows) => {
    for (let done = 0; done < rows.length; done += ROWS_AT_ONCE) {
      const some = rows.slice(done, done + ROWS_AT_ONCE);
      const values: Value[] = [];
      for (const each of some) addValues(values, each);
      if (statementFor(some.length).run(...values).changes !== some.length) return false;
    }
    return true;
  };
}
