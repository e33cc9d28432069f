import { assert, assertEquals, assertThrows } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { auditLedger } from "../../../lib/billing/reports/audit.ts";
import { byName, DAY_MS, NO_TOKENS } from "../../../lib/store/days.ts";
import { openStore } from "../../../lib/store/open.ts";
import { MIGRATIONS } from "../../../lib/store/sqlite/migrations.ts";
import { openSheetRows } from "../../../lib/store/sqlite/ledger_rows.ts";
import { openSumming } from "../../../lib/store/sqlite/sums.ts";
import { atomically } from "../../../lib/store/sqlite/transaction.ts";
import { DAY, entry } from "../behaviours_ledger.ts";
import { inFolder } from "../in_folder.ts";

const COUNT = 4_300;
const BY_USER = { since: DAY * DAY_MS, until: (DAY + 2) * DAY_MS, by: "user", thenBy: "day" } as const;

/** A file with entries that none of the sums have. */
async function filled(path: string, count = COUNT): Promise<void> {
  const store = await openStore({ kind: "sqlite", path }, { own: true });
  await store.ledger.append(Array.from({ length: count }, (_, index) =>
    entry({
      id: `r${index}`,
      at: (DAY + index % 2) * DAY_MS + index,
      // 0.000001 USD per token.
      tokens: { ...NO_TOKENS, prompt: index, input_cache_read: 1_000 },
      cost: BigInt(index) * 1_000_000n + 100_000_000n,
      ...(index % 3 === 0 && { details: { user: `user-${index % 7}`, tags: ["a", `b${index % 5}`] } }),
    })));
  await store.close();
}

Deno.test("a file of the version before is served at once, and its sums are made step by step", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    await filled(path);
    const db = new DatabaseSync(path);
    for (
      const table of ["sums_head", "upstream_days", "upstream_hours", "user_days", "entry_blocks", "answer_claims"]
    ) {
      db.exec(`DROP TABLE ${table}`);
    }
    db.exec(`CREATE INDEX entries_failed ON entries (at) WHERE ending IN ('failed', 'refused', 'lost');
      ALTER TABLE alerts DROP COLUMN subject;
      ALTER TABLE ledger_start DROP COLUMN ahead;
      PRAGMA user_version = ${MIGRATIONS.findIndex((step) => step.includes("CREATE TABLE sums_head"))}`);
    db.close();
    const store = await openStore({ kind: "sqlite", path }, { own: true });
    const { ledger } = store;
    assertEquals(await ledger.sumsHead(), { seq: 0, firstDay: 0, firstHour: (DAY + 1) * 24 + 1 });
    const before = await ledger.usage(BY_USER);
    assertEquals(before.reduce((sum, { requests }) => sum + requests, 0), COUNT);
    for (let isMore = true; isMore;) {
      const { seq } = await ledger.sumsHead();
      isMore = await ledger.sumUp();
      assert((await ledger.sumsHead()).seq > seq);
      assertEquals(await ledger.usage(BY_USER), before);
    }
    assertEquals((await ledger.sumsHead()).seq, 4_000);
    // Nothing is left to do until a block is complete.
    assertEquals(await ledger.sumUp(), false);
    assertEquals((await ledger.sumsHead()).seq, 4_000);
    const { checked, differences } = await auditLedger(ledger);
    assertEquals(differences, []);
    assert(checked.later_sums > 30, String(checked.later_sums));
    await store.close();
  });
});

Deno.test("a step that ends in the middle leaves no trace, and is done again", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    await filled(path);
    const db = new DatabaseSync(path);
    const summing = openSumming(db, openSheetRows(db));
    const crash = new Error("crash");
    assertThrows(
      () =>
        atomically(db, () => {
          summing.sumUp(COUNT);
          throw crash;
        }),
      Error,
      "crash",
    );
    assertEquals(summing.head().seq, 0);
    assertEquals(db.prepare("SELECT count(*) AS count FROM user_days").get()?.count, 0);
    while (atomically(db, () => summing.sumUp(COUNT)));
    assertEquals(summing.head().seq, 4_000);
    db.close();
    const store = await openStore({ kind: "sqlite", path }, { own: true });
    const sums = await store.ledger.usage(BY_USER);
    assertEquals(
      sums.reduce((sum, { cost }) => sum + cost, 0n),
      BigInt(COUNT * (COUNT - 1) / 2 + COUNT * 100) * 1_000_000n,
    );
    assertEquals(sums, sums.toSorted(byName));
    await store.close();
  });
});

Deno.test("steps that take long have fewer entries, and steps that take no time have whole blocks", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    await filled(path, 6_000);
    const db = new DatabaseSync(path);
    let [now, stepMs] = [0, 30];
    const summing = openSumming(db, openSheetRows(db), () => now += stepMs);
    const heads = (count: number) =>
      Array.from({ length: count }, () => {
        atomically(db, () => summing.sumUp(6_000));
        return summing.head().seq;
      });
    assertEquals(heads(3), [250, 375, 500]);
    stepMs = 1;
    assertEquals(heads(6), [625, 875, 1_375, 2_000, 4_000, 6_000]);
    assertEquals(summing.sumUp(6_000), false);
    db.close();
    const store = await openStore({ kind: "sqlite", path }, { own: true });
    assertEquals((await auditLedger(store.ledger)).differences, []);
    await store.close();
  });
});

Deno.test("the audit finds sums by upstream, hour, end user or tag that differ from the entries", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/sluice.db`;
    // Sums are made of whole blocks of 2,000 entries.
    await filled(path, 2_100);
    const store = await openStore({ kind: "sqlite", path }, { own: true });
    while (await store.ledger.sumUp());
    await store.close();
    const damages = [
      "UPDATE upstream_days SET attempts = attempts + 1 WHERE day = (SELECT min(day) FROM upstream_days)",
      "UPDATE user_days SET saved = saved - 1 WHERE end_user = 'user-3' AND tags LIKE '%b1%'",
      "DELETE FROM user_days WHERE tags LIKE '%b2%'",
      "DELETE FROM upstream_days",
      "UPDATE upstream_hours SET cost = cost + 1 WHERE hour = (SELECT max(hour) FROM upstream_hours)",
      "DELETE FROM upstream_hours",
      "UPDATE upstream_days SET upstream = 'other'",
    ];
    for (const [index, damage] of damages.entries()) {
      const copy = `${folder}/copy-${index}.db`;
      await Deno.copyFile(path, copy);
      const db = new DatabaseSync(copy);
      db.exec(damage);
      db.close();
      const damaged = await openStore({ kind: "sqlite", path: copy }, { readOnly: true });
      const { differences } = await auditLedger(damaged.ledger);
      assertEquals([...new Set(differences.map(({ kind }) => kind))], ["day_sum"], damage);
      await damaged.close();
    }
  });
});
