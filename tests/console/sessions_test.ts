import { assertEquals } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { EndedSessions } from "../../lib/access/console_session.ts";
import { Secret } from "../../lib/secret.ts";
import { openPostgresStore } from "../../lib/store/postgres/store.ts";
import { openSqliteStore } from "../../lib/store/sqlite/store.ts";
import { inFolder } from "../store/in_folder.ts";
import { freshDatabase, postgresTest } from "../support/databases.ts";
import { ADMIN_KEY, startKeyed } from "../support/keyed_gateway.ts";
import { Browser } from "./browser.ts";
import { until } from "../support/soon.ts";

const ADMIN = { admin: { key: { env: "ADMIN_KEY" } } };

Deno.test("a signed-out session stays ended after a restart", () =>
  inFolder(async (folder) => {
    const [first, second] = [1, 2].map(() => () => openSqliteStore(`${folder}/sluice.db`));
    let kept = "";
    {
      const store = first?.() ?? openSqliteStore("");
      await using gateway = startKeyed(ADMIN, { store });
      const browser = new Browser(gateway);
      await browser.signIn(ADMIN_KEY);
      kept = browser.cookie;
      await browser.post("/sign-out", {});
    }
    const store = second?.() ?? openSqliteStore("");
    await using gateway = startKeyed(ADMIN, { store });
    const browser = new Browser(gateway);
    browser.cookie = kept;
    assertEquals((await browser.get()).path, "/sign-in");
  }));

postgresTest("signing out on one node ends the session on the others", async () => {
  await using database = await freshDatabase();
  const stores = await Promise.all([1, 2].map(() => openPostgresStore(new Secret(database.url))));
  const [one, other] = stores;
  if (one === undefined || other === undefined) throw new Error("expected two stores");
  await using first = startKeyed(ADMIN, { store: one });
  await using second = startKeyed(ADMIN, { store: other });
  const [here, there] = [new Browser(first), new Browser(second)];
  await here.signIn(ADMIN_KEY);
  there.cookie = here.cookie;
  assertEquals((await there.get("/keys")).path, "/keys");
  await here.post("/sign-out", {});
  await until("the sign-in page", async () => (await there.get("/keys")).path === "/sign-in");
});

Deno.test("an operator can sign in and out while the store records neither, and the log reports it", () =>
  inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    const store = openSqliteStore(path);
    await using gateway = startKeyed(ADMIN, { store });
    const db = new DatabaseSync(path);
    db.exec("ALTER TABLE change_log RENAME TO change_log_gone; ALTER TABLE ended_sessions RENAME TO ended_gone");
    db.close();
    const browser = new Browser(gateway);
    assertEquals((await browser.signIn(ADMIN_KEY)).path, "");
    const kept = browser.cookie;
    await browser.post("/sign-out", {});
    browser.cookie = kept;
    assertEquals((await browser.get()).path, "/sign-in", "the session has ended on this node");
    assertEquals(gateway.logs.map((line) => [line.event, "action" in line ? line.action : undefined]), [
      ["change_not_logged", "sign_in"],
      ["sign_out_not_stored", undefined],
      ["change_not_logged", "sign_out"],
    ]);
  }));

Deno.test("the list of ended sessions is read once a second, and kept during an outage", async () => {
  let reads = 0;
  let isAway = false;
  const ended = new EndedSessions({
    endSession: () => Promise.resolve(),
    endedSessions: () => {
      reads++;
      return isAway ? Promise.reject(new Error("away")) : Promise.resolve([{ id: "one", expiresAt: 9_000 }]);
    },
  });
  const results = await Promise.all([1, 2, 3].map(() => ended.has("two", 1_000)));
  assertEquals([results, reads], [[false, false, false], 1]);
  assertEquals([await ended.has("one", 1_500), await ended.has("two", 1_999), reads], [true, false, 1]);
  isAway = true;
  assertEquals([await ended.has("two", 2_000), await ended.has("one", 2_001), reads], [false, true, 2]);
  await ended.end({ id: "two", expiresAt: 9_000 }, 2_500);
  assertEquals(await ended.has("two", 2_500), true);
});
