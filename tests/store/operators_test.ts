import { assertEquals, assertRejects } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { Secret } from "../../lib/secret.ts";
import { connect, migrate } from "../../lib/store/postgres/client.ts";
import { openPostgresKeys } from "../../lib/store/postgres/keys.ts";
import { openPostgresOperators } from "../../lib/store/postgres/operators.ts";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import { freshDatabase, HAS_POSTGRES } from "../support/databases.ts";
import { hash, key } from "./behaviours_keys.ts";
import { type OperatorParts, testOperators } from "./behaviours_operators.ts";
import { inFolder } from "./in_folder.ts";

const OPTIONS = { ignore: !HAS_POSTGRES };

function inFile(test: (parts: OperatorParts) => Promise<void>): Promise<void> {
  return inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/sluice.db`);
    const db = new DatabaseSync(`${folder}/sluice.db`);
    try {
      // deno-lint-ignore require-await -- an error of the statement must reject
      await test({ ...store, run: async (statement) => db.exec(statement) });
    } finally {
      db.close();
      await store.close();
    }
  });
}

async function inDatabase(test: (parts: OperatorParts) => Promise<void>): Promise<void> {
  await using database = await freshDatabase();
  const sql = connect(new Secret(database.url), 4);
  try {
    await migrate(sql);
    await test({
      keys: openPostgresKeys(sql),
      operators: openPostgresOperators(sql),
      run: async (statement) => void await sql.unsafe(statement),
    });
  } finally {
    await sql.end({ timeout: 1 });
  }
}

testOperators("the SQLite store", inFile);
testOperators("the Postgres store", inDatabase, OPTIONS);

const ORIGIN = { author: "admin_key", at: 1 } as const;

for (const [store, open, ignore] of [["SQLite", inFile, false], ["Postgres", inDatabase, !HAS_POSTGRES]] as const) {
  Deno.test(
    `the ${store} store does not change a key if the change cannot be logged`,
    { ignore },
    () =>
      open(async ({ keys, run }) => {
        await keys.add(key(), ORIGIN);
        await run("ALTER TABLE change_log RENAME TO change_log_gone");
        await assertRejects(() => keys.change("key_1", { disabled: true }, ORIGIN));
        await assertRejects(() => keys.rotate("key_1", { hash: hash("b"), until: 9 }, ORIGIN));
        await assertRejects(() => keys.revoke("key_1", 9, ORIGIN));
        assertEquals(await keys.list(), [key()]);
      }),
  );
}
