import { assertEquals, assertLess } from "@std/assert";
import { HAS_POSTGRES, postgresTest } from "../../support/databases.ts";
import { until } from "../../support/soon.ts";
import { migratedDatabase } from "./migrated.ts";
import { openNode } from "./nodes.ts";

const ignore = !HAS_POSTGRES;

postgresTest("the shared configuration is the last one stored", async () => {
  await using database = await migratedDatabase();
  await using one = await openNode(database.url);
  await using other = await openNode(database.url);
  assertEquals(await one.configs.latest(), undefined);
  const before = Date.now();
  assertEquals(await one.configs.put('{"a":1}\n'), 1);
  assertEquals(await other.configs.put('{"a":1}\n'), 1);
  assertEquals(await other.configs.put('{"a":2}\n'), 2);
  // A text that was stored before and then replaced counts as a new one.
  assertEquals(await one.configs.put('{"a":1}\n'), 3);
  const latest = await other.configs.latest();
  assertEquals({ ...latest, at: 0 }, { version: 3, text: '{"a":1}\n', at: 0 });
  assertLess(Math.abs((latest?.at ?? 0) - before), 10_000);
});

postgresTest("concurrently stored configurations get separate versions", async () => {
  await using database = await migratedDatabase();
  await using one = await openNode(database.url);
  await using other = await openNode(database.url);
  const versions = await Promise.all(
    Array.from({ length: 150 }, (_, index) => (index % 2 === 0 ? one : other).configs.put(`{"n":${index}}`)),
  );
  assertEquals(versions.toSorted((a, b) => a - b), Array.from({ length: 150 }, (_, index) => index + 1));
  const [last] = versions.flatMap((version, index) => version === 150 ? [`{"n":${index}}`] : []);
  assertEquals((await one.configs.latest())?.text, last);
  // Old ones go.
  const [{ count }] = await one.sql<[{ count: bigint }]>`SELECT count(*) FROM configs`;
  assertEquals(count, 100n);
  assertEquals(await Promise.all(Array.from({ length: 10 }, () => one.configs.put("same"))), Array(10).fill(151));
});

for (const isDeaf of [false, true]) {
  Deno.test({
    name: `every node is told of another shared configuration${isDeaf ? ", though notifications are lost" : ""}`,
    ignore,
    async fn() {
      await using database = await migratedDatabase();
      await using one = await openNode(database.url, { isDeaf });
      await using other = await openNode(database.url, { isDeaf });
      await one.configs.put("first");
      await one.configs.latest();
      let [mine, theirs] = [0, 0];
      const end = one.configs.watch(() => mine++);
      other.configs.watch(() => theirs++);
      await until("the first version", () => other.changes.config === 1 && one.changes.config === 1);
      await until("the first call", () => theirs > 0);
      [mine, theirs] = [0, 0];
      await one.configs.put("second");
      await until("one call each", () => mine === 1 && theirs === 1);
      await one.configs.put("second");
      end();
      await other.configs.put("third");
      await until("a second call", () => theirs === 2);
      assertEquals(mine, 1);
    },
  });
}

postgresTest("a node that starts to watch is notified of texts stored since its last read", async () => {
  await using database = await migratedDatabase();
  await using one = await openNode(database.url);
  await using other = await openNode(database.url);
  await one.configs.put("first");
  assertEquals((await other.configs.latest())?.version, 1);
  await one.configs.put("second");
  await other.changes.poll();
  let count = 0;
  other.configs.watch(() => count++);
  await until("a call", () => count === 1);
});
