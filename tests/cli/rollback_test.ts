import { assertEquals, assertStringIncludes } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { Secret } from "../../lib/secret.ts";
import { connect } from "../../lib/store/postgres/client.ts";
import { MIGRATIONS as TABLES } from "../../lib/store/postgres/migrations.ts";
import { MIGRATIONS } from "../../lib/store/sqlite/migrations.ts";
import { freshDatabase, postgresTest } from "../support/databases.ts";
import { inFolder, type Place, reuseGateways, reuseProcess, run, startReused } from "../support/program.ts";

reuseProcess();
reuseGateways();

/** Commands that read, that change, and that serve. */
const COMMANDS = [["serve", "--port", "0"], ["keys", "list"], ["keys", "add", "new"], ["usage"], ["audit"], ["prune"]];

async function assertRefused(place: Place, { shape, known }: { shape: number; known: number }): Promise<void> {
  for (const command of COMMANDS) {
    const { code, out, err } = await run(command, place);
    assertEquals([code, out, err.trimEnd().split("\n").length], [1, "", 1], `${command}: ${err}`);
    assertStringIncludes(
      err,
      `it was written by a newer version of Sluice (schema version ${shape}, known up to ${known}): start that version or ` +
        "restore an older backup",
    );
  }
}

async function assertServes(place: Place): Promise<void> {
  assertEquals(JSON.parse((await run(["keys", "list", "--json"], place)).out).length, 1);
  const gateway = await startReused(["serve"], place);
  gateway.kill("SIGTERM");
  assertEquals((await gateway.ended).code, 0);
}

Deno.test("an older version rejects a newer file, leaves it unchanged, and serves from the backup copy", () =>
  inFolder(async (folder) => {
    const place = { folder };
    const path = `${folder}/data/sluice.db`;
    const newer = MIGRATIONS.length + 1;
    assertEquals((await run(["keys", "add", "ci"], place)).code, 0);
    assertEquals((await run(["backup", `data/sluice.db.shape-${MIGRATIONS.length}`], place)).code, 0);
    const db = new DatabaseSync(path);
    // As a newer version does when it migrates the file.
    db.exec(`CREATE TABLE later (one INTEGER) STRICT; PRAGMA user_version = ${newer}`);
    db.close();
    const before = await Deno.readFile(path);
    await assertRefused(place, { shape: newer, known: MIGRATIONS.length });
    assertEquals(await Deno.readFile(path), before);

    await Deno.mkdir(`${folder}/kept`);
    for await (const { name } of Deno.readDir(`${folder}/data`)) {
      if (/^sluice\.db(-|$)/.test(name)) await Deno.rename(`${folder}/data/${name}`, `${folder}/kept/${name}`);
    }
    await Deno.rename(`${path}.shape-${MIGRATIONS.length}`, path);
    await assertServes(place);
  }));

postgresTest(
  "an older version rejects newer tables, leaves them unchanged, and serves from the backup",
  () =>
    inFolder(async (folder) => {
      await using database = await freshDatabase();
      const place = { folder, env: { SLUICE_STORE: database.url } };
      const newer = TABLES.length + 1;
      assertEquals((await run(["keys", "add", "ci"], place)).code, 0);
      const sql = connect(new Secret(database.url), 1);
      try {
        await sql`UPDATE sluice_shape SET version = ${newer}`;
        await assertRefused(place, { shape: newer, known: TABLES.length });
        assertEquals((await sql`SELECT version FROM sluice_shape`)[0]?.version, newer);
        assertEquals((await sql`SELECT name FROM keys`).map(({ name }) => name), ["ci"]);
        // Undoes the newer migration steps, as a restored dump would.
        await sql`UPDATE sluice_shape SET version = ${TABLES.length}`;
      } finally {
        await sql.end({ timeout: 1 });
      }
      await assertServes(place);
    }),
);
