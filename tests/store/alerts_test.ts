import { assertEquals } from "@std/assert";
import { Secret } from "../../lib/secret.ts";
import type { AlertStore } from "../../lib/store/alerts.ts";
import { openPostgresAlerts } from "../../lib/store/postgres/alerts.ts";
import { connect, migrate } from "../../lib/store/postgres/client.ts";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import { freshDatabase, HAS_POSTGRES } from "../support/databases.ts";
import { alert, testAlerts } from "./behaviours_alerts.ts";
import { inFolder } from "./in_folder.ts";

const OPTIONS = { ignore: !HAS_POSTGRES };

/** Hands the alerts of some nodes on one database to a test. */
async function inDatabase(nodes: number, test: (...alerts: AlertStore[]) => Promise<void>): Promise<void> {
  await using database = await freshDatabase();
  const pools = Array.from({ length: nodes }, () => connect(new Secret(database.url), 4));
  try {
    for (const sql of pools) await migrate(sql);
    await test(...pools.map(openPostgresAlerts));
  } finally {
    await Promise.all(pools.map((sql) => sql.end({ timeout: 1 })));
  }
}

testAlerts("the SQLite store", (test) =>
  inFolder(async (folder) => {
    const store = openSqliteStore(`${folder}/sluice.db`);
    try {
      await test(store.alerts);
    } finally {
      await store.close();
    }
  }));

testAlerts("the Postgres store", (test) => inDatabase(1, test), OPTIONS);

Deno.test(
  "nodes that add and claim concurrently have one alert per subject, and claim it once",
  OPTIONS,
  () =>
    inDatabase(4, async (...nodes) => {
      for (let round = 0; round < 20; round++) {
        const added = await Promise.all(
          nodes.flatMap((alerts, node) =>
            ["x", "y"].map((name) =>
              alerts.add(alert(`${round}-${node}-${name}`, { subject: `upstream ${round}`, at: round }))
            )
          ),
        );
        assertEquals(added.filter((each) => each === "added").length, 1, added.join());
        const claimed = await Promise.all(nodes.map((alerts) => alerts.claim(60_000)));
        assertEquals(claimed.filter((each) => each !== undefined).length, 1);
      }
    }),
);

Deno.test(
  "a start that a node adds after another node's later end is ignored, unless it is much older",
  OPTIONS,
  () =>
    inDatabase(2, async (one, two) => {
      assertEquals(await one?.add(alert("a", { at: 10_000 })), "added");
      assertEquals(await one?.add(alert("b", { at: 20_000, begins: false })), "added");
      assertEquals(await two?.add(alert("c", { at: 19_999 })), "known");
      assertEquals(await two?.add(alert("d", { at: 20_100, begins: false })), "known");
      assertEquals(await two?.add(alert("e", { at: 14_999 })), "added");
    }),
);
