/** The ledger in Postgres and its server: constraints, clock, restarts and crashes. */
import { eventually } from "../../support/soon.ts";
import { assertEquals, assertLess, assertRejects } from "@std/assert";
import { Secret } from "../../../lib/secret.ts";
import type { LedgerStore } from "../../../lib/store/ledger.ts";
import { connect } from "../../../lib/store/postgres/client.ts";
import { openPostgresLedger } from "../../../lib/store/postgres/ledger.ts";
import { HAS_POSTGRES, startPostgres } from "../../support/databases.ts";
import { SHEET } from "../../billing/reports/entries.ts";
import { DAY, entry, hold, readChain } from "../behaviours_ledger.ts";
import { TABLES, withLedgers } from "./ledgers.ts";

const OPTIONS = { ignore: !HAS_POSTGRES };

Deno.test("the Postgres ledger rejects changes of entries", OPTIONS, () =>
  withLedgers(1, async ([ledger], sql) => {
    await ledger.append([entry({ id: "a" }), entry({ id: "b" })]);
    const before = await readChain(ledger);
    const wrong = [
      "UPDATE entries SET cost = 1",
      "DELETE FROM entries WHERE seq = 1",
      "TRUNCATE entries",
      'INSERT INTO entries SELECT (e).* FROM (SELECT json_populate_record(x, \'{"seq": 4, "id": "c"}\') AS e FROM entries x LIMIT 1) y',
      "UPDATE price_sheets SET prompt = '0'",
      "DELETE FROM price_sheets",
      "TRUNCATE price_sheets",
      "UPDATE ledger_head SET seq = 1",
      "UPDATE ledger_head SET seq = 9",
      "DELETE FROM ledger_head",
      "TRUNCATE ledger_head",
      "UPDATE ledger_start SET seq = 1",
      "DELETE FROM ledger_start",
      "INSERT INTO ledger_start VALUES (2, 0, 0, 0)",
      "TRUNCATE ledger_start",
    ];
    for (const text of wrong) {
      const error = await assertRejects(async () => await sql.unsafe(text), Error);
      assertEquals("code" in error && error.code, "23001", `${text}: ${error.message}`);
    }
    assertEquals(await readChain(ledger), before);
    assertEquals(await ledger.append([entry({ id: "c" })]), [true]);
  }));

Deno.test(
  "the Postgres ledger rejects a batch with texts that it cannot store unchanged",
  OPTIONS,
  () =>
    withLedgers(1, async ([ledger]) => {
      for (const text of ["a\0b", "\ud800"]) {
        const wrong = [{ id: text }, { model: text }, { upstream: text }, { sheet: { ...SHEET, prompt: text } }];
        for (const change of wrong) {
          await assertRejects(() => ledger.append([entry({ id: "good" }), entry(change)]), RangeError, "Cannot enter");
        }
        await assertRejects(() => ledger.hold(hold({ id: text })), RangeError, "Cannot hold");
        assertEquals(await ledger.find(text), undefined);
      }
      for (const change of [{ at: 0.5 }, { leaseUntil: NaN }]) {
        await assertRejects(() => ledger.hold(hold(change)), RangeError, "Cannot hold");
      }
      const odd = entry({ id: `"'\\{}, \u2028 😀`, model: "", upstream: "null" });
      assertEquals(await ledger.append([odd]), [true]);
      assertEquals((await readChain(ledger)).map(({ id, upstream }) => [id, upstream]), [[odd.id, "null"]]);
    }),
);

Deno.test("nodes with clocks minutes apart use the server's clock for leases", OPTIONS, async () => {
  const aheadMs = 600_000;
  await withLedgers(2, async ([late], sql) => {
    const right = openPostgresLedger(sql);
    const [lateNow, rightNow] = [() => Date.now() - aheadMs, Date.now];
    await late.hold(hold({ id: "late", amount: 1n, claims: [], leaseUntil: lateNow() + 60_000 }));
    await right.hold(hold({ id: "right", amount: 1n, claims: [], leaseUntil: rightNow() + 60_000 }));
    for (const [ledger, now] of [[late, lateNow], [right, rightNow]] as const) {
      assertEquals(await ledger.expire(now()), []);
      for (const { leaseUntil } of await ledger.holds()) {
        assertLess(Math.abs(leaseUntil - now() - 60_000), 30_000);
      }
    }
    await late.renew(["right"], lateNow() + 300_000);
    assertEquals(await right.expire(rightNow() + 120_000), ["late"]);
    assertEquals(await late.expire(lateNow() + 240_000), []);
    assertEquals(await late.expire(lateNow() + 360_000), ["right"]);
  }, { now: () => Date.now() - aheadMs });
});

Deno.test(
  "clocks that differ by less than a second count as equal",
  OPTIONS,
  () =>
    withLedgers(1, async ([ledger], sql) => {
      const { leaseUntil } = hold();
      await ledger.hold(hold({ claims: [] }));
      const [row] = await sql<{ lease_until: bigint }[]>`SELECT lease_until FROM holds`;
      assertEquals(row?.lease_until, BigInt(leaseUntil));
    }, { now: () => Date.now() - 500 }),
);

Deno.test({
  name: "a hold from before the server's start is not voided for a while, and while it is renewed",
  ...OPTIONS,
  fn: async () => {
    await using server = await startPostgres();
    const sql = connect(new Secret(server.url), 2);
    try {
      await sql.unsafe(TABLES);
      // The grace period of one ledger lasts longer than any test; that of the other is over when the server answers.
      const [ledger, later] = [600_000, 1].map((graceMs) => openPostgresLedger(sql, { graceMs })) as [
        LedgerStore,
        LedgerStore,
      ];
      const leaseUntil = Date.now() + 50;
      for (const id of ["running", "dead"]) await ledger.hold(hold({ id, amount: 1n, claims: [], leaseUntil }));
      await server.stop();
      await server.start();
      await eventually(() => ledger.start());
      assertEquals(await ledger.expire(Date.now()), []);
      await ledger.renew(["running"], Date.now() + 600_000);
      assertEquals(await later.expire(Date.now()), ["dead"]);
      // One that was made since has no such grace.
      await ledger.hold(hold({ id: "new", amount: 1n, claims: [], leaseUntil: Date.now() - 1 }));
      assertEquals(await ledger.expire(Date.now()), ["new"]);
      assertEquals((await ledger.holds()).map(({ id }) => id), ["running"]);
    } finally {
      await sql.end({ timeout: 1 });
    }
  },
});

Deno.test(
  "nodes continue after a failover to a server that lacks the last entries, and report it",
  OPTIONS,
  async () => {
    let reports = 0;
    await withLedgers(
      2,
      async ([one, other = one], sql) => {
        const sold = (id: string, factor: string) => entry({ id, sheet: { ...SHEET, factor } });
        await one.append([entry({ id: "a" })]);
        const first = await one.find("a");
        await one.append([sold("b", "2")]);
        // Restored to the state after the first.
        await sql.unsafe(`
      ALTER TABLE entries DISABLE TRIGGER USER;
      ALTER TABLE price_sheets DISABLE TRIGGER USER;
      ALTER TABLE ledger_head DISABLE TRIGGER USER;
      DELETE FROM entries WHERE seq > 1;
      DELETE FROM price_sheets WHERE version > 1;
      UPDATE ledger_head SET seq = 1, check_sum = ${first?.check};
      ALTER TABLE entries ENABLE TRIGGER USER;
      ALTER TABLE price_sheets ENABLE TRIGGER USER;
      ALTER TABLE ledger_head ENABLE TRIGGER USER`);
        // The other node makes a price sheet with the version of the lost one.
        assertEquals(await other.append([sold("c", "3")]), [true]);
        assertEquals(await one.append([sold("d", "2"), sold("e", "3"), entry({ id: "f" })]), [true, true, true]);
        assertEquals((await readChain(one)).map(({ id, priceVersion, sheet }) => [id, priceVersion, sheet?.factor]), [
          ["a", 1, "0.8"],
          ["c", 2, "3"],
          ["d", 3, "2"],
          ["e", 2, "3"],
          ["f", 1, "0.8"],
        ]);
        // An entry that was pruned is not lost.
        assertEquals(reports, 1);
        while (await one.prune(DAY + 1, Infinity));
        assertEquals([await other.append([entry({ id: "g" })]), await one.append([entry({ id: "h" })])], [[true], [
          true,
        ]]);
        assertEquals(reports, 1);
      },
      { rolledBack: () => void reports++ },
    );
  },
);

Deno.test(
  "the Postgres ledger rejects transactions with a stale snapshot",
  OPTIONS,
  () =>
    withLedgers(1, async ([ledger], sql) => {
      await sql.unsafe(
        "ALTER DATABASE " + (await sql`SELECT current_database() AS name`)[0]?.name +
          " SET default_transaction_isolation = 'repeatable read'",
      );
      await assertRejects(() => ledger.append([entry()]), Error, "read committed");
      await assertRejects(() => ledger.hold(hold()), Error, "read committed");
    }),
);

Deno.test("a changed wall clock neither ends nor extends a lease", OPTIONS, async () => {
  let jumped = 0;
  let elapsed = 0;
  const clock = { now: () => Date.now() + elapsed + jumped, monotonic: () => elapsed };
  await withLedgers(1, async ([ledger], sql) => {
    const other = openPostgresLedger(sql);
    for (const jump of [-7_200_000, 10_800_000]) {
      const id = `held at ${jump}`;
      const now = () => ledger.clock?.() ?? NaN;
      await ledger.hold(hold({ id, amount: 1n, claims: [], leaseUntil: now() + 30_000 }));
      jumped += jump;
      // The offset of the server's clock is measured again, in the background of the next calls.
      elapsed += 60_000;
      const assertLeased = async () => {
        const [open] = await ledger.holds();
        assertLess(Math.abs((open?.leaseUntil ?? 0) - clock.now() - 30_000), 25_000);
      };
      await eventually(assertLeased);
      await ledger.renew([id], now() + 30_000);
      assertEquals(await ledger.expire(now()), [], id);
      assertEquals(await other.expire(Date.now()), [], id);
      await assertLeased();
      assertEquals(await ledger.append([entry({ id })]), [true]);
    }
  }, clock);
});
