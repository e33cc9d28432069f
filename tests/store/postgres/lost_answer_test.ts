/** Effects of a lost connection on the driver. */
import { assertEquals, assertLess } from "@std/assert";
import { Secret } from "../../../lib/secret.ts";
import { connect, isOutOfReach, type Sql } from "../../../lib/store/postgres/client.ts";
import { freshDatabase, HAS_POSTGRES } from "../../support/databases.ts";
import { until } from "../../support/soon.ts";

const OPTIONS = { ignore: !HAS_POSTGRES };

async function withConnection(test: (sql: Sql) => Promise<void>): Promise<void> {
  await using database = await freshDatabase();
  const sql = connect(new Secret(database.url), 1);
  try {
    await test(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/**
 * True once the answer has arrived. The driver may never give it if its connection was lost while it opened; the store
 * waits 2 s.
 */
async function inTime(answer: Promise<unknown>): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => late.resolve(false), 2_000);
  try {
    return await Promise.race([answer.then(() => true), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Asks until there is an answer. */
async function insist<Result>(ask: () => PromiseLike<Result>): Promise<Result> {
  for (let tries = 1;; tries++) {
    try {
      return await ask();
    } catch (error) {
      if (tries === 20 || !isOutOfReach(error)) throw error;
    }
  }
}

Deno.test("an answer is complete after another one was lost midway", OPTIONS, () =>
  withConnection(async (sql) => {
    for (const isTagged of [true, false]) {
      let lost = 0;
      try {
        // More rows than the server buffers, so some have arrived.
        await sql`
            SELECT repeat('x', 9000), CASE WHEN n = 5 THEN pg_terminate_backend(pg_backend_pid()) END
            FROM generate_series(1, 10) n`;
      } catch (error) {
        lost += Number(isOutOfReach(error));
      }
      assertEquals(lost, 1);
      const rows = await insist(() =>
        isTagged
          ? sql<{ one: number }[]>`SELECT 1 AS one UNION ALL SELECT 2`
          : sql.unsafe<{ one: number }[]>("SELECT 1 AS one UNION ALL SELECT 2")
      );
      assertEquals(rows.map(({ one }) => one), [1, 2]);
      assertEquals([rows.length, rows.count, rows[0]?.one], [2, 2, 1]);
    }
  }));

Deno.test("connections lost while opening affect nothing else", OPTIONS, () =>
  withConnection(async (sql) => {
    await using database = await freshDatabase();
    const fragile = connect(new Secret(database.url), 4);
    const name = new URL(database.url).pathname.slice(1);
    let isOver = false;
    const answers = [0, 0, 0, 0];
    const pending = Promise.all(answers.map(async (_, client) => {
      while (!isOver) {
        const answer = inTime(insist(() => fragile`SELECT pg_sleep(0.001)`));
        await answer.then((came) => answers[client] = (answers[client] ?? 0) + Number(came), () => {});
      }
    }));
    for (let cut = 0, rounds = 0; cut < 40; rounds++) {
      // The driver waits longer after each opening that failed: up to a few seconds.
      assertLess(rounds, 10_000);
      const rows = await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ${name}`;
      cut += rows.length;
      await sql`SELECT pg_sleep(0.004)`;
    }
    const before = [...answers];
    await until(
      "every client has answers again",
      () => before.every((count, client) => count < (answers[client] ?? 0)),
    );
    isOver = true;
    await pending;
    await fragile.end({ timeout: 1 });
  }));
