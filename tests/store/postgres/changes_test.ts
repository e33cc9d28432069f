import { assert, assertEquals, assertLess, assertRejects } from "@std/assert";
import type { KeyStore } from "../../../lib/store/keys.ts";
import { Changes } from "../../../lib/store/postgres/changes.ts";
import { isOutOfReach, type Sql } from "../../../lib/store/postgres/client.ts";
import { NoAnswer } from "../../../lib/store/outage/reachability.ts";
import { type Engine, postgresTest, startPostgres } from "../../support/databases.ts";
import { pause, soon, until } from "../../support/soon.ts";
import { hash, key } from "../behaviours_keys.ts";
import { migratedDatabase } from "./migrated.ts";
import { type Node, openNode } from "./nodes.ts";

/**
 * Longest time until a change binds on every node, and until an unreachable database is noticed, in milliseconds: less
 * than the 60 seconds of a cached key.
 */
const BINDS_MS = 30_000;

/** Ends every connection that waits for notifications. */
async function cutListeners({ sql }: Node): Promise<void> {
  await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND (query ILIKE 'LISTEN%' OR query ILIKE '%FROM changes%')`;
}

const WAYS: Record<string, { isDeaf: boolean; before?: (node: Node) => Promise<void> }> = {
  "by a notification": { isDeaf: false },
  "though notifications are lost": { isDeaf: true },
  "though the listening connection was cut": { isDeaf: false, before: cutListeners },
};

const CHANGES: Record<string, (keys: KeyStore) => Promise<unknown>> = {
  revoked: (keys) => keys.revoke("key_1", 7),
  disabled: (keys) => keys.change("key_1", { disabled: true }),
  expiresAt: (keys) => keys.change("key_1", { expiresAt: 1 }),
  rules: (keys) => keys.change("key_1", { rules: { models: [] } }),
  rotated: (keys) => keys.rotate("key_1", { hash: hash("b"), until: 5 }),
};

for (const [way, { isDeaf, before }] of Object.entries(WAYS)) {
  postgresTest(`a key change on one node applies on another while its copy is fresh, ${way}`, async () => {
    for (const [name, change] of Object.entries(CHANGES)) {
      await using database = await migratedDatabase();
      await using one = await openNode(database.url);
      await using other = await openNode(database.url, { isDeaf });
      await one.keys.add(key());
      const known = await other.keys.findByHash(hash("a"), 0);
      await one.keys.findByHash(hash("a"), 0);
      await before?.(one);
      await change(one.keys);
      const changed = (await one.keys.list())[0];
      // The node that makes the change needs no notification.
      assertEquals(await one.keys.findByHash(hash("a"), 0), changed, name);
      assertEquals(known, key());
      const applies = async () => JSON.stringify(await other.keys.findByHash(hash("a"), 0)) === JSON.stringify(changed);
      await until(name, applies, BINDS_MS);
      assert(other.changes.isUp && one.changes.isUp);
    }
  });
}

postgresTest("a node listens again after its connection was cut", async () => {
  await using database = await migratedDatabase();
  await using one = await openNode(database.url);
  await using other = await openNode(database.url);
  await one.keys.add(key());
  await cutListeners(one);
  await one.changes.poll();
  await until("listening", async () => (await countListeners(one)) === 2);
  await other.keys.findByHash(hash("a"), 0);
  const { notifications } = other;
  await one.keys.revoke("key_1", 7);
  await until("a notification", () => other.notifications > notifications);
  await until("revoked", async () => (await other.keys.findByHash(hash("a"), 0))?.revokedAt === 7);
});

async function countListeners({ sql }: Node): Promise<number> {
  const [row] = await sql<{ count: bigint }[]>`SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND query ILIKE '%FROM changes%'`;
  return Number(row?.count);
}

postgresTest("no change is missed for any order of commits", async () => {
  await using database = await migratedDatabase();
  await using one = await openNode(database.url);
  await using other = await openNode(database.url);
  await using third = await openNode(database.url);
  const ids = Array.from({ length: 60 }, (_, index) => index.toString(16).padStart(64, "0"));
  for (const id of ids) await one.keys.add(key({ id, name: id, hash: id }));
  for (const id of ids) await third.keys.findByHash(id, 0);
  const { reads } = third;
  const held = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  // The first one to change a key is the last to commit.
  const slow = one.sql.begin(async (tx) => {
    await tx`UPDATE keys SET disabled = true WHERE id = ${ids[0] ?? ""}`;
    begun.resolve();
    await held.promise;
  });
  await begun.promise;
  const all = ids.slice(1).map((id, index) => (index % 2 === 0 ? one : other).keys.change(id, { disabled: true }));
  await third.changes.poll();
  held.resolve();
  await Promise.all([slow, ...all]);
  await until("all changes", async () => {
    const found = await Promise.all(ids.map((id) => third.keys.findByHash(id, 0)));
    return found.every((key) => key?.disabled === true);
  }, BINDS_MS);
  assertEquals(third.reads, reads);
});

postgresTest("manual changes of keys and a restored backup apply as well", async () => {
  await using database = await migratedDatabase();
  await using node = await openNode(database.url);
  await node.keys.add(key());
  await node.keys.findByHash(hash("a"), 0);
  await node.sql`UPDATE keys SET disabled = true`;
  await until("disabled", async () => (await node.keys.findByHash(hash("a"), 0))?.disabled === true, BINDS_MS);
  // As in a restored copy of an earlier time: later changes are not counted.
  await node.sql.begin(async (tx) => {
    await tx`ALTER TABLE keys DISABLE TRIGGER keys_change`;
    await tx`UPDATE keys SET disabled = false`;
    await tx`ALTER TABLE keys ENABLE TRIGGER keys_change`;
    await tx`UPDATE changes SET keys = 0`;
  });
  await until("enabled", async () => (await node.keys.findByHash(hash("a"), 0))?.disabled === false, BINDS_MS);
  await node.sql`DELETE FROM keys`;
  await until("deleted", async () => await node.keys.findByHash(hash("a"), 0) === undefined, BINDS_MS);
});

const OUTAGES: Record<string, { begin: (engine: Engine) => unknown; end: (engine: Engine) => unknown }> = {
  "is gone": { begin: (engine) => engine.stop("crash"), end: (engine) => engine.start() },
  "stands still": { begin: (engine) => engine.signal("SIGSTOP"), end: (engine) => engine.signal("SIGCONT") },
};

for (const [what, outage] of Object.entries(OUTAGES)) {
  postgresTest(`while the database ${what}, cached keys work for a while and others wait`, async () => {
    await using engine = await startPostgres();
    await using node = await openNode(engine.url, { keyAgeMs: 60_000 });
    for (const letter of ["a", "b", "c", "d"]) {
      await node.keys.add(key({ id: letter, name: letter, hash: hash(letter) }));
    }
    await node.keys.change("b", { disabled: true });
    for (const letter of ["a", "b", "c"]) await node.keys.findByHash(hash(letter), 0);
    await node.keys.revoke("c", 7);
    // This one has not read anything yet.
    await using other = await openNode(engine.url, { keyAgeMs: 60_000 });

    await outage.begin(engine);
    const begun = performance.now();
    // Calls that wait for the database fail as soon as it is found to be unreachable.
    const listed = node.keys.list().then(() => "listed", (error) => isOutOfReach(error));
    let longest = 0;
    while (node.changes.isUp) {
      const requested = performance.now();
      assertEquals((await node.keys.findByHash(hash("a"), 0))?.id, "a");
      longest = Math.max(longest, performance.now() - requested);
      await pause(5);
      assertLess(performance.now() - begun, BINDS_MS);
    }
    assertLess(longest, BINDS_MS);
    assertEquals(await soon("the list", listed, BINDS_MS), true);
    const requested = performance.now();
    assertEquals((await node.keys.findByHash(hash("a"), 0))?.id, "a");
    assertEquals((await node.keys.findByHash(hash("b"), 0))?.disabled, true);
    await until("the other notices", () => !other.changes.isUp, BINDS_MS);
    for (const each of [node, other]) assertEquals((await each.keys.findByHash(hash("d"), 0))?.id, "d");
    // The first was revoked here: it must not come back while the database is unreachable.
    for (const letter of ["c", "e"]) {
      await assertRejects(() => node.keys.findByHash(hash(letter), 0), Error, "unreachable");
    }
    assertLess(performance.now() - requested, BINDS_MS);

    node.later(57_000 - (performance.now() - begun));
    assertEquals((await node.keys.findByHash(hash("a"), 0))?.id, "a");
    node.later(10_000);
    await assertRejects(() => node.keys.findByHash(hash("a"), 0), Error, "unreachable");

    await outage.end(engine);
    await until("back", () => node.changes.isUp);
    assertEquals((await node.keys.findByHash(hash("a"), 0))?.id, "a");
    assertEquals((await node.keys.findByHash(hash("c"), 0))?.revokedAt, 7);
    assertEquals((await node.keys.findByHash(hash("d"), 0))?.id, "d");
    assertEquals(await node.keys.findByHash(hash("e"), 0), undefined);
    // It listens again.
    const { notifications } = node;
    await node.sql`UPDATE keys SET disabled = true WHERE id = 'a'`;
    await until("a notification", () => node.notifications > notifications);
    await until("disabled", async () => (await node.keys.findByHash(hash("a"), 0))?.disabled === true);
  });
}

Deno.test("calls that are late on replaced connections do not replace the new ones", async () => {
  let [now, stalls] = [0, 0];
  const rows = Promise.resolve([{ keys: 0n, keys_gone: 0n, config: 0n }]);
  const pool = { sql: (() => rows) as unknown as Sql, renew() {}, close: () => Promise.resolve() };
  const stalled = () => void stalls++;
  const options = { pool, isPooled: true, stalled, isLedgerUp: () => false, monotonic: () => now, log() {} };
  const changes = new Changes(options);
  for (const [at, count] of [[5_000, 1], [5_000, 1], [6_900, 1], [7_000, 2]] as const) {
    now = at;
    assert(await changes.checkNow(new NoAnswer()));
    assertEquals(stalls, count, String(at));
  }
  changes.close();
});

Deno.test("a feed that alone gets no answer for five seconds is logged, and so is its recovery", async () => {
  let [now, isUp, isLedgerUp] = [0, false, true];
  const events: string[] = [];
  const answer = () =>
    isUp ? Promise.resolve([{ keys: 0n, keys_gone: 0n, config: 0n }]) : Promise.reject(new NoAnswer());
  const pool = { sql: answer as unknown as Sql, renew() {}, close: () => Promise.resolve() };
  const changes = new Changes({
    ...{ pool, isPooled: true, stalled() {}, isLedgerUp: () => isLedgerUp, monotonic: () => now },
    log: ({ event }) => events.push(event),
  });
  const poll = async (at: number) => {
    now = at;
    await changes.poll().catch(() => {});
    return events.splice(0).join();
  };
  assertEquals([await poll(0), await poll(4_999)], ["", ""]);
  // An outage of the whole store is reported by the ledger.
  isLedgerUp = false;
  assertEquals(await poll(5_000), "");
  isLedgerUp = true;
  assertEquals([await poll(6_000), await poll(7_000)], ["store_changes_unreadable", ""]);
  isUp = true;
  assertEquals([await poll(8_000), await poll(9_000)], ["store_changes_readable", ""]);
  changes.close();
});

postgresTest("a database that has lost changes of keys, as after a failover, is reported", async () => {
  await using database = await migratedDatabase();
  await using node = await openNode(database.url);
  for (const letter of ["a", "b"]) await node.keys.add(key({ id: `key_${letter}`, name: letter, hash: hash(letter) }));
  await node.changes.poll();
  await node.sql`UPDATE changes SET keys = keys - 1`;
  await node.changes.poll();
  await node.changes.poll();
  assertEquals(node.lines.map(({ event, lost }) => [event, lost]), [["store_rolled_back", "changes of keys"]]);
});

postgresTest("cached keys are read again while the change feed is down but the database answers", async () => {
  await using database = await migratedDatabase();
  await using node = await openNode(database.url, { keyAgeMs: 60_000 });
  await node.keys.add(key());
  await node.keys.findByHash(hash("a"), 0);
  // The count of changes cannot be read any more.
  await node.sql`ALTER TABLE changes RENAME TO hidden`;
  await node.changes.poll().catch(() => {});
  await node.sql`ALTER TABLE keys DISABLE TRIGGER keys_change`;
  await node.sql`UPDATE keys SET disabled = true`;
  assertEquals((await node.keys.findByHash(hash("a"), 0))?.disabled, false);
  node.later(2_001);
  assertEquals((await node.keys.findByHash(hash("a"), 0))?.disabled, true);
  assert(node.changes.isUp);
  assertEquals(node.lines.map(({ event, code }) => [event, code]), [["store_changes_unreadable", "42P01"]]);
  // If the keys cannot be read either, that is an outage, whatever the error.
  await node.sql`ALTER TABLE keys RENAME TO hidden_keys`;
  assertEquals((await node.keys.findByHash(hash("a"), 0))?.disabled, true);
  await assertRejects(() => node.keys.findByHash(hash("b"), 0));
  node.later(60_000);
  await assertRejects(() => node.keys.findByHash(hash("a"), 0));
  await node.sql`ALTER TABLE hidden_keys RENAME TO keys`;
  await node.sql`ALTER TABLE hidden RENAME TO changes`;
  await node.changes.poll();
  assertEquals(node.lines.map(({ event }) => event), ["store_changes_unreadable", "store_changes_readable"]);
  const { reads } = node;
  await node.keys.findByHash(hash("a"), 0);
  await node.keys.findByHash(hash("a"), 0);
  assertEquals(node.reads, reads + 1);
});
