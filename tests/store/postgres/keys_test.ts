import { assertEquals, assertLessOrEqual } from "@std/assert";
import { Secret } from "../../../lib/secret.ts";
import { connect } from "../../../lib/store/postgres/client.ts";
import { openPostgresKeys } from "../../../lib/store/postgres/keys.ts";
import { HAS_POSTGRES, postgresTest } from "../../support/databases.ts";
import { hash, key, testKeys } from "../behaviours_keys.ts";
import { eventually, until } from "../../support/soon.ts";
import { migratedDatabase } from "./migrated.ts";
import { openNode } from "./nodes.ts";

if (HAS_POSTGRES) {
  testKeys("the Postgres store", async (test) => {
    await using database = await migratedDatabase();
    const sql = connect(new Secret(database.url), 4);
    await test(openPostgresKeys(sql));
    await sql.end();
  });

  testKeys("the Postgres store of a node", async (test) => {
    await using database = await migratedDatabase();
    await using node = await openNode(database.url);
    await test(node.keys);
  });
}

/** A different hash for each number. */
function nth(number: number): string {
  return number.toString(16).padStart(64, "0");
}

postgresTest("the Postgres store keeps hashes unique under concurrency", async () => {
  await using database = await migratedDatabase();
  await using one = await openNode(database.url);
  await using other = await openNode(database.url);
  for (let round = 0; round < 20; round++) {
    const [mine, theirs] = [nth(round * 2), nth(round * 2 + 1)];
    const added = await Promise.all([
      one.keys.add(key({ id: `a${round}`, name: `a${round}`, hash: mine, former: { hash: theirs, until: 1 } })),
      other.keys.add(key({ id: `b${round}`, name: `b${round}`, hash: theirs })),
    ]);
    assertEquals(added.toSorted(), [false, true]);
  }
  await one.keys.add(key({ id: "c", name: "c", hash: hash("c") }));
  await one.keys.add(key({ id: "d", name: "d", hash: hash("d") }));
  const rotated = await Promise.all([
    one.keys.rotate("c", { hash: hash("e"), until: 9 }),
    other.keys.rotate("d", { hash: hash("e"), until: 9 }),
  ]);
  assertEquals(rotated.toSorted(), [false, true]);
});

postgresTest("the Postgres store records last uses of the same keys from several nodes", async () => {
  await using database = await migratedDatabase();
  await using one = await openNode(database.url);
  await using other = await openNode(database.url);
  const ids = Array.from({ length: 100 }, (_, index) => `key_${index}`);
  for (const [index, id] of ids.entries()) await one.keys.add(key({ id, name: id, hash: nth(index) }));
  const [{ keys: before }] = await one.sql<[{ keys: bigint }]>`SELECT keys FROM changes`;
  await Promise.all(Array.from({ length: 40 }, (_, round) => {
    const order = round % 2 === 0 ? ids : ids.toReversed();
    return (round % 2 === 0 ? one : other).keys.touch(new Map(order.map((id) => [id, 1000 + round])));
  }));
  assertEquals(new Set((await one.keys.list()).map(({ lastUsedAt }) => lastUsedAt)), new Set([1039]));
  // Other nodes need no notification of this change.
  const [{ keys: after }] = await one.sql<[{ keys: bigint }]>`SELECT keys FROM changes`;
  assertEquals(after, before);
});

postgresTest("a node reads each key once, valid or wrong", async () => {
  await using database = await migratedDatabase();
  await using node = await openNode(database.url);
  await node.keys.add(key());
  await node.keys.rotate("key_1", { hash: hash("b"), until: 5000 });
  for (let now = 0; now < 100; now++) {
    assertEquals((await node.keys.findByHash(hash("b"), now))?.id, "key_1");
    assertEquals((await node.keys.findByHash(hash("a"), now))?.id, "key_1");
  }
  assertEquals(await node.keys.findByHash(hash("a"), 5000), undefined);
  assertEquals(node.reads, 1);
  // The same wrong key costs one read, until any key changes: then it may have been made.
  for (let times = 0; times < 10; times++) assertEquals(await node.keys.findByHash(hash("c"), 0), undefined);
  // The notifications of its own two changes may arrive meanwhile.
  assertLessOrEqual(node.reads, 4);
  await using other = await openNode(database.url);
  await other.keys.add(key({ id: "c", name: "c", hash: hash("c") }));
  await until("found", async () => (await node.keys.findByHash(hash("c"), 0))?.id === "c");
  await node.keys.findByHash(nth(1), 0);
  await node.keys.add(key({ id: "d", name: "d", hash: nth(1) }));
  assertEquals((await node.keys.findByHash(nth(1), 0))?.id, "d");
});

postgresTest("a node evicts the least recently used keys", async () => {
  await using database = await migratedDatabase();
  await using other = await openNode(database.url);
  for (const letter of ["a", "b", "c"]) {
    await other.keys.add(key({ id: letter, name: letter, hash: hash(letter) }));
  }
  // Notifications of the changes would count as a use, so the test begins after them.
  await using node = await openNode(database.url, { maxKeys: 2 });
  for (const letter of ["a", "b", "a", "c", "a", "c"]) await node.keys.findByHash(hash(letter), 0);
  assertEquals(node.reads, 3);
  await node.keys.findByHash(hash("b"), 0);
  assertEquals(node.reads, 4);
});

for (const revoker of ["itself", "another"]) {
  postgresTest(`a node does not cache a key that ${revoker} revoked during the read`, async () => {
    const read = Promise.withResolvers<void>();
    const handOver = Promise.withResolvers<void>();
    let isFirst = true;
    async function slowly<T>(readIt: () => Promise<T>): Promise<T> {
      const found = await readIt();
      if (!isFirst) return found;
      isFirst = false;
      read.resolve();
      await handOver.promise;
      return found;
    }
    await using database = await migratedDatabase();
    await using other = await openNode(database.url);
    await other.keys.add(key());
    await using node = await openNode(database.url, { between: slowly });
    const early = node.keys.findByHash(hash("a"), 0);
    await read.promise;
    await (revoker === "itself" ? node : other).keys.revoke("key_1", 7);
    await node.changes.poll();
    assertEquals((await node.keys.findByHash(hash("a"), 0))?.revokedAt, 7);
    handOver.resolve();
    assertEquals((await early)?.revokedAt, undefined);
    assertEquals((await node.keys.findByHash(hash("a"), 0))?.revokedAt, 7);
  });
}

postgresTest("a flood of unknown keys does not delay known ones", async () => {
  await using database = await migratedDatabase();
  let begun = 0;
  let gate: Promise<void> | undefined;
  async function gated<T>(read: () => Promise<T>): Promise<T> {
    begun++;
    await gate;
    return await read();
  }
  await using node = await openNode(database.url, { between: gated });
  await node.keys.add(key());
  await node.keys.findByHash(hash("a"), 0);
  const opened = Promise.withResolvers<void>();
  [begun, gate] = [0, opened.promise];
  const crowd = Promise.allSettled(Array.from({ length: 15_000 }, (_, index) => node.keys.findByHash(nth(index), 0)));
  for (let turn = 0; turn < 10; turn++) await null;
  assertEquals(begun, 32);
  opened.resolve();
  await node.keys.findByHash(hash("a"), 0);
  const [one, other] = await Promise.all([1, 2].map(() => node.keys.findByHash(hash("a"), 0)));
  assertEquals([one?.id, other?.id], ["key_1", "key_1"]);
  const refused = (await crowd).filter((one) => one.status === "rejected" && /too many/.test(String(one.reason)));
  // 10,000 wait for one of the 32.
  assertEquals(refused.length, 15_000 - 32 - 10_000);
  assertEquals(await eventually(() => node.keys.findByHash(nth(1), 0)), undefined);
});
