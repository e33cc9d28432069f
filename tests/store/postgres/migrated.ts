/** Databases with the tables of this version, for all tests of a module. */
import { Secret } from "../../../lib/secret.ts";
import { connect, migrate } from "../../../lib/store/postgres/client.ts";
import { freshDatabase } from "../../support/databases.ts";

type Database = Awaited<ReturnType<typeof freshDatabase>>;

let original: Promise<Database> | undefined;

Deno.test.afterAll(async () => {
  const database = await original;
  original = undefined;
  await database?.[Symbol.asyncDispose]();
});

/** The address of a database with empty tables, copied from one: to make the tables takes three times as long. */
export async function migratedDatabase(): Promise<Database> {
  return await freshDatabase({ like: (await (original ??= makeOriginal())).url });
}

async function makeOriginal(): Promise<Database> {
  const database = await freshDatabase();
  const sql = connect(new Secret(database.url), 1);
  await migrate(sql);
  await sql.end();
  return database;
}
