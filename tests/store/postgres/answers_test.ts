import { assert, assertEquals, assertRejects, fail } from "@std/assert";
import { Secret } from "../../../lib/secret.ts";
import type { AnswerStore } from "../../../lib/store/answers.ts";
import { openPostgresAnswers } from "../../../lib/store/postgres/answers.ts";
import { connect, migrate } from "../../../lib/store/postgres/client.ts";
import { MIGRATIONS } from "../../../lib/store/postgres/migrations.ts";
import { freshDatabase, HAS_POSTGRES } from "../../support/databases.ts";
import { answer, ROOM, store, testAnswers } from "../behaviours_answers.ts";
import { migratedDatabase } from "./migrated.ts";

const OPTIONS = { ignore: !HAS_POSTGRES };

/** Hands the answers of some nodes on one database to a test. */
async function inDatabase(nodes: number, test: (...answers: AnswerStore[]) => Promise<void>): Promise<void> {
  await using database = await migratedDatabase();
  const pools = Array.from({ length: nodes }, () => connect(new Secret(database.url), 4));
  try {
    await test(...pools.map(openPostgresAnswers));
  } finally {
    await Promise.all(pools.map((sql) => sql.end({ timeout: 1 })));
  }
}

testAnswers("the Postgres store", (test) => inDatabase(1, test), OPTIONS);

Deno.test({
  name: "the Postgres store deletes answers in pieces of an older database, and stores new ones",
  ...OPTIONS,
  fn: async () => {
    await using database = await freshDatabase();
    const sql = connect(new Secret(database.url), 1);
    const older = 5;
    await sql.unsafe(
      `CREATE TABLE sluice_shape (version integer NOT NULL); INSERT INTO sluice_shape VALUES (${older});
       ${MIGRATIONS.slice(0, older).join("")}
       CREATE FUNCTION begin_answer(text) RETURNS void LANGUAGE sql AS 'SELECT';
       CREATE TABLE answers (id bigint PRIMARY KEY, scope text, key text, headers text);
       CREATE TABLE answer_pieces (answer bigint REFERENCES answers, part integer, bytes bytea);
       INSERT INTO answers VALUES (1, 's', 'k', '{}');
       INSERT INTO answer_pieces VALUES (1, 0, '\\x00')`,
    );
    await migrate(sql);
    const answers = openPostgresAnswers(sql);
    assertEquals(await answers.find("s", "k"), undefined);
    await store(answers, answer());
    assertEquals(await answers.find("s", "k"), answer());
    await sql.end({ timeout: 1 });
  },
});

Deno.test(
  "all nodes find an answer, and of concurrent ones the last is kept",
  OPTIONS,
  () =>
    inDatabase(2, async (one, two) => {
      assert(one !== undefined && two !== undefined);
      await store(one, answer());
      assertEquals(await two.find("s", "k"), answer());
      await Promise.all([one, two, one, two].map((node, index) => store(node, answer({ status: 200 + index }))));
      assert(await one.find("s", "k") !== undefined);
      assertEquals(await one.find("s", "k"), await two.find("s", "k"));
    }),
);

Deno.test("concurrent nodes together respect the bound of bytes", OPTIONS, () =>
  inDatabase(3, async (...nodes) => {
    const keys = Array.from({ length: 30 }, (_, index) => `k${index}`);
    await Promise.all(keys.map((key, index) => store(nodes[index % 3] ?? fail(), answer({ key }), { maxBytes: 125 })));
    const bodies = async () =>
      (await Promise.all(keys.map((key) => nodes[0]?.find("s", key)))).filter((each) => each?.body !== undefined);
    assertEquals((await bodies()).length, 12);
    await Promise.all(nodes.map(async (node) => {
      while (await node.prune({ until: 0, maxBytes: 0, maxAnswers: 100 }));
    }));
    assertEquals(await bodies(), []);
  }));

Deno.test(
  "nodes that store and prune the same answers at once do not deadlock",
  OPTIONS,
  () =>
    inDatabase(3, async (...nodes) => {
      // Half of them are too old, and the others too large.
      const answers = Array.from({ length: 10 }, (_, index) => answer({ key: `k${index}`, doneAt: 1000 + index % 2 }));
      for (let round = 0; round < 20; round++) {
        await Promise.all([
          ...answers.map((each, index) => store(nodes[index % 3] ?? fail(), each)),
          ...nodes.map((node) => node.prune({ until: 1000, maxBytes: 0, maxAnswers: 100 })),
        ]);
      }
    }),
);

Deno.test("one of many concurrent nodes claims a request", OPTIONS, () =>
  inDatabase(3, async (...nodes) => {
    for (let round = 0; round < 20; round++) {
      const claims = Array.from({ length: 12 }, (_, index) => ({
        ...{ scope: "s", key: `k${round}`, requestHash: "a".repeat(64) },
        holder: `${index}`,
      }));
      const others = await Promise.all(claims.map((claim, index) => nodes[index % 3]?.claim(claim, 60_000)));
      assertEquals(others.filter((other) => other === undefined).length, 1);
      const winner = claims[others.indexOf(undefined)];
      assert(winner !== undefined);
      await nodes[0]?.release(winner);
      assertEquals(await nodes[1]?.isClaimed("s", `k${round}`), false);
    }
  }));

Deno.test("the Postgres store rejects invalid answers", OPTIONS, async () => {
  await using database = await freshDatabase();
  const sql = connect(new Secret(database.url), 1);
  const answers = openPostgresAnswers(sql);
  const claim = { scope: "s", key: "k", requestHash: "a".repeat(64), holder: "h" };
  // There are no tables.
  const calls: (() => Promise<unknown>)[] = [
    () => answers.find("s", "k"),
    () => answers.put(answer(), { ...ROOM, holder: "h" }),
    () => answers.claim(claim, 1000),
    () => answers.isClaimed("s", "k"),
    () => answers.release(claim),
    () => answers.prune({ until: 0, maxBytes: 0, maxAnswers: 0 }),
  ];
  for (const call of calls) await assertRejects(call);
  await sql.end({ timeout: 1 });
});
