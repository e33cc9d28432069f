import { assert, assertEquals, assertRejects } from "@std/assert";
import { Secret } from "../../../lib/secret.ts";
import type { AnswerStore } from "../../../lib/store/answers.ts";
import { openPostgresAnswers } from "../../../lib/store/postgres/answers.ts";
import { connect, migrate } from "../../../lib/store/postgres/client.ts";
import { freshDatabase, HAS_POSTGRES } from "../../engines/engines.ts";
import { answer, ROOM, testAnswers } from "../behaviours_answers.ts";

const OPTIONS = { ignore: !HAS_POSTGRES };

/** Hands the answers of some nodes on one database to a test. */
async function inDatabase(nodes: number, test: (...answers: AnswerStore[]) => Promise<void>): Promise<void> {
  await using database = await freshDatabase();
  const pools = Array.from({ length: nodes }, () => connect(new Secret(database.url), 4));
  try {
    for (const sql of pools) await migrate(sql);
    await test(...pools.map(openPostgresAnswers));
  } finally {
    await Promise.all(pools.map((sql) => sql.end({ timeout: 1 })));
  }
}

testAnswers("the Postgres store", (test) => inDatabase(1, test), OPTIONS);

Deno.test({
  name: "an answer is seen by all nodes once it is sealed, and the one sealed last stays",
  ...OPTIONS,
  fn: () =>
    inDatabase(2, async (one, two) => {
      assert(one !== undefined && two !== undefined);
      const { id } = await one.begin(answer(), ROOM);
      await one.write(id, 0, Uint8Array.of(1));
      assertEquals(await two.find("s", "k"), undefined);
      await one.seal(id);
      assertEquals(await two.find("s", "k"), { ...answer(), id });
      assertEquals(await two.read(id, 0), Uint8Array.of(1));
      const begun = await Promise.all([one, two, one, two].map(async (node) => ({
        node,
        id: (await node.begin(answer(), ROOM)).id,
      })));
      await Promise.all(begun.map(({ node, id }) => node.seal(id)));
      assert(begun.some((each) => each.id !== id));
      assertEquals(await one.find("s", "k"), await two.find("s", "k"));
      assertEquals(await one.keptBytes(), 10);
    }),
});

Deno.test({
  name: "nodes that begin at once keep no more bytes together than the bound",
  ...OPTIONS,
  fn: () =>
    inDatabase(3, async (...nodes) => {
      const begun = await Promise.all(Array.from({ length: 30 }, (_, index) =>
        nodes[index % 3]?.begin(answer({ key: `k${index}` }), { maxBytes: 125 })));
      assertEquals(
        begun.filter((each) =>
          each?.kept
        ).length,
        12,
      );
      assertEquals(await nodes[0]?.keptBytes(), 120);
      await Promise.all(nodes.map(async (node) => {
        while (await node.prune({ until: 1000, maxBytes: 0, maxAnswers: 0 }));
      }));
      assertEquals(await nodes[0]?.keptBytes(), 0);
    }),
});

Deno.test({
  name: "of many nodes that claim a request at once one has it",
  ...OPTIONS,
  fn: () =>
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
    }),
});

Deno.test({
  name: "what the Postgres store cannot do with answers rejects",
  ...OPTIONS,
  fn: async () => {
    await using database = await freshDatabase();
    const sql = connect(new Secret(database.url), 1);
    const answers = openPostgresAnswers(sql);
    const claim = { scope: "s", key: "k", requestHash: "a".repeat(64), holder: "h" };
    // There are no tables.
    const calls: (() => Promise<unknown>)[] = [
      () => answers.find("s", "k"),
      () => answers.begin(answer(), ROOM),
      () => answers.write(1, 0, Uint8Array.of(1)),
      () => answers.seal(1),
      () => answers.read(1, 0),
      () => answers.claim(claim, 1000),
      () => answers.isClaimed("s", "k"),
      () => answers.release(claim),
      () => answers.keptBytes(),
      () => answers.prune({ until: 0, maxBytes: 0, maxAnswers: 0 }),
    ];
    for (const call of calls) await assertRejects(call);
    await sql.end({ timeout: 1 });
  },
});
