/** Tests of several nodes that do the same concurrently on one database. */
import { assert, assertEquals, assertGreater, assertLess } from "@std/assert";
import { auditLedger } from "../../../lib/billing/reports/audit.ts";
import { type BudgetClaim, type Entry, type LedgerStore, userAccount } from "../../../lib/store/ledger.ts";
import type { Sql } from "../../../lib/store/postgres/client.ts";
import { HAS_POSTGRES } from "../../support/databases.ts";
import { seeded } from "../../support/random.ts";
import { entryOf, SHEET } from "../../billing/reports/entries.ts";
import { DAY, hold, MIDNIGHT, ofKey, readChain } from "../behaviours_ledger.ts";
import { type Ledgers, withLedgers } from "./ledgers.ts";
import { eventually, until } from "../../support/soon.ts";
import { availableIn } from "../../support/available.ts";

const OPTIONS = { ignore: !HAS_POSTGRES };

const NODES = 4;

const HOUR = 3_600_000;

/** An entry of the day that budgets are for. */
function settled(id: string, change: Partial<Entry> = {}): Entry {
  return entryOf({ id, at: MIDNIGHT + HOUR, ...change });
}

function count<Item>(items: readonly Item[], is: (item: Item) => boolean): number {
  return items.filter(is).length;
}

async function assertSound(ledger: LedgerStore): Promise<void> {
  const { ok, differences } = await auditLedger(ledger, { now: () => MIDNIGHT });
  assertEquals([ok, differences], [true, []]);
}

/**
 * Asserts that there was no deadlock. Closes the connections of the nodes, which report their statistics at their end.
 */
async function assertNoDeadlock(sql: Sql): Promise<void> {
  for (let others = 1; others > 0;) {
    const rows = await sql`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`;
    others = rows.length;
  }
  const [row] = await sql<{ deadlocks: bigint }[]>`
    SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`;
  assertEquals(row?.deadlocks, 0n);
}

Deno.test(
  "nodes that enter the same requests concurrently enter each once, in one chain",
  OPTIONS,
  () =>
    withLedgers(NODES, async (ledgers) => {
      const { below } = seeded(7);
      // Each node enters its own part of the ids, and some of all nodes', at different prices.
      const batches = ledgers.map((_, node) =>
        Array.from({ length: 30 }, (_, batch) =>
          Array.from({ length: 1 + below(40) }, (_, index) => {
            const id = below(3) === 0 ? `all-${below(300)}` : `${node}-${batch}-${index}`;
            return settled(id, { keyId: `key_${below(5)}`, sheet: { ...SHEET, factor: `0.${1 + below(30)}` } });
          }))
      );
      const entered = await Promise.all(ledgers.map(async (ledger, node) => {
        const mine: string[] = [];
        for (const batch of batches[node] ?? []) {
          const isNew = await ledger.append(batch);
          mine.push(...batch.filter((_, index) => isNew[index]).map(({ id }) => id));
        }
        return mine;
      }));
      const ids = new Set(batches.flat(2).map(({ id }) => id));
      assertEquals(entered.flat().toSorted(), [...ids].toSorted());
      for (const mine of entered) assertGreater(mine.length, 0);
      const chain = await readChain(ledgers[0]);
      assertEquals(new Set(chain.map(({ id }) => id)), ids);
      const versions = new Map(chain.map(({ priceVersion, sheet }) => [priceVersion, sheet?.factor]));
      assertEquals(
        [...versions.keys()].toSorted((a = 0, b = 0) => a - b),
        Array.from(versions, (_, index) => index + 1),
      );
      assertEquals(new Set(versions.values()).size, versions.size);
      await assertSound(ledgers[1] ?? ledgers[0]);
    }),
);

Deno.test(
  "nodes that compete for the rest of a budget grant it once",
  OPTIONS,
  () =>
    withLedgers(NODES, async (ledgers) => {
      // The budgets of the requests in turn; in the last case each exhausts the budget of the next.
      const cases = [["key"], ["user"], ["group"], ["key", "group"]] as const;
      for (let round = 0; round < 32; round++) {
        const scopes = cases[round % cases.length] ?? cases[0];
        const [keyId, group] = [`key_${round}`, `group_${round}`];
        const claimOf = (scope: BudgetClaim["scope"]): BudgetClaim => {
          const id = { key: keyId, user: userAccount(keyId, "anna"), group }[scope];
          return { scope, id, budget: 100n, since: DAY };
        };
        const wishes = Array.from({ length: 160 }, (_, index) =>
          hold({
            id: `${round}-${index}`,
            // Several keys share the budget of a group.
            keyId: scopes[0] === "group" ? `${keyId}_${index % 3}` : keyId,
            group,
            amount: 1n,
            claims: [claimOf(scopes[index % scopes.length] ?? "key")],
          }));
        const answers = await Promise.all(wishes.map((wish, index) => pick(ledgers, index).hold(wish)));
        assertEquals(count(answers, ({ held }) => held), 100, `round ${round}`);
        for (const ledger of ledgers) {
          for (const scope of scopes) assertEquals(await availableIn(ledger, claimOf(scope)), 0n);
        }
      }
    }),
);

function pick([first, ...rest]: Ledgers, index: number): LedgerStore {
  return rest[index % (rest.length + 1) - 1] ?? first;
}

Deno.test(
  "nodes that hold and enter concurrently never exceed a budget and never deadlock",
  OPTIONS,
  () =>
    withLedgers(NODES, async (ledgers, sql) => {
      const budgets = { key: 400_000_000_000n, group: 1_000_000_000_000n };
      const amount = 9_000_000_000n;
      const paid = new Map<string, bigint>();
      await Promise.all(ledgers.map(async (ledger, node) => {
        const { below } = seeded(node + 1);
        await Promise.all(Array.from({ length: 12 }, async (_, client) => {
          for (let turn = 0; turn < 12; turn++) {
            const [keyId, group] = [`key_${below(4)}`, `group_${below(2)}`];
            const id = `${node}-${client}-${turn}`;
            const claims: BudgetClaim[] = [
              { scope: "group", id: group, budget: budgets.group, since: DAY },
              { scope: "key", id: keyId, budget: budgets.key, since: DAY },
            ];
            if (below(2) === 0) claims.reverse();
            const { held } = await ledger.hold(hold({ id, keyId, group, amount, claims }));
            if (!held) continue;
            const tokens = { ...settled(id).tokens, completion: 20 + below(1000) };
            const entry = settled(id, { keyId, group, held: amount, tokens });
            assertEquals(await ledger.append([entry]), [true]);
            for (const name of [keyId, group]) paid.set(name, (paid.get(name) ?? 0n) + entry.cost);
          }
        }));
      }));
      for (const [id, sum] of paid) {
        const scope = id.startsWith("key") ? "key" : "group";
        assert(sum <= budgets[scope] && sum > budgets[scope] / 2n, `${id}: ${sum}`);
        const left = await availableIn(ledgers[0], { scope, id, budget: budgets[scope], since: DAY });
        assertEquals(left, budgets[scope] - sum);
      }
      assertEquals(await ledgers[0].holds(), []);
      await assertSound(ledgers[0]);
      await assertNoDeadlock(sql);
    }),
);

Deno.test(
  "a request whose lease ends during entry and renewal ends once",
  OPTIONS,
  () =>
    withLedgers(NODES, async (ledgers, sql) => {
      const [first, ...others] = ledgers;
      const { leaseUntil } = hold();
      const seen = { entered: 0, lost: 0, renewed: 0 };
      for (let round = 0; round < 25; round++) {
        const ids = Array.from({ length: 12 }, (_, index) => `${round}-${index}`);
        await Promise.all(ids.map((id) => first.hold(hold({ id, amount: 1n, claims: [] }))));
        const [entering, renewing] = [ids.slice(0, 6), ids.slice(6)];
        const enter = () => first.append(entering.map((id) => settled(id, { held: 10_000_000_000n })));
        const renew = () => first.renew(renewing, leaseUntil + 1000);
        const expire = () => Promise.all(others.map((ledger) => ledger.expire(leaseUntil)));
        // Only in the first rounds is it certain who comes first.
        const before = round === 0 ? [await enter(), await renew()] as const : undefined;
        const voidedBefore = round === 1 ? await expire() : undefined;
        const headStart = () => new Promise((resolve) => setTimeout(resolve, round % 5));
        const [entered, voided] = await Promise.all([
          before?.[0] ?? headStart().then(enter),
          voidedBefore ?? expire(),
          before === undefined && headStart().then(renew),
        ]);
        const lost = voided.flat();
        assertEquals(new Set(lost).size, lost.length);
        const open = (await first.holds()).map(({ id }) => id);
        for (const [index, id] of entering.entries()) {
          assertEquals([entered[index], lost.includes(id), open.includes(id)], [
            !lost.includes(id),
            !entered[index],
            false,
          ]);
        }
        for (const id of renewing) assertEquals(lost.includes(id), !open.includes(id));
        seen.entered += count(entered, (isNew) => isNew);
        seen.lost += lost.length;
        seen.renewed += open.length;
        await first.append(open.map((id) => settled(id)));
        assertEquals(await first.holds(), []);
      }
      assertEquals((await readChain(first)).length, 25 * 12);
      assert(seen.entered > 0 && seen.lost > 0, JSON.stringify(seen));
      await assertSound(first);
      await assertNoDeadlock(sql);
    }),
);

/** Resolves when a statement of a node waits for a lock. */
async function untilLockIsAwaited(sql: Sql): Promise<void> {
  await until("a statement waits for a lock", async () => {
    const [row] = await sql<{ waiting: bigint }[]>`
      SELECT count(*) AS waiting FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    return row?.waiting !== 0n;
  });
}

Deno.test("a hold renewed while it is being voided stays", OPTIONS, () =>
  withLedgers(2, async ([one, other], sql) => {
    assert(other !== undefined);
    const { leaseUntil } = hold();
    await one.hold(hold({ claims: [] }));
    await one.hold(hold({ id: "dead", claims: [] }));
    // The hold is renewed before the sweep that would void it.
    const beside = await sql.reserve();
    await beside`SELECT pg_advisory_lock(1397507155, 1)`;
    const voiding = other.expire(leaseUntil);
    await untilLockIsAwaited(sql);
    await one.renew(["r1"], leaseUntil + 1);
    await beside`SELECT pg_advisory_unlock(1397507155, 1)`;
    assertEquals(await voiding, ["dead"]);
    assertEquals((await one.holds()).map(({ id }) => id), ["r1"]);
    // Renewed within that turn.
    await beside`BEGIN`;
    await beside`UPDATE holds SET lease_until = ${leaseUntil + 100}`;
    const again = other.expire(leaseUntil + 1);
    await untilLockIsAwaited(sql);
    await beside`COMMIT`;
    beside.release();
    assertEquals(await again, []);
    assertEquals((await one.holds()).map(({ leaseUntil }) => leaseUntil), [leaseUntil + 100]);
    assertEquals(await one.append([settled("r1")]), [true]);
  }));

Deno.test(
  "a hold that another node made during the entry ends without a second entry",
  OPTIONS,
  () =>
    withLedgers(1, async ([ledger], sql) => {
      const { leaseUntil } = hold();
      await ledger.append([settled("r1")]);
      const holdLate = () =>
        sql`
          INSERT INTO holds (id, at, day, key_id, group_name, model, endpoint, amount, claims, lease_until, alive_at)
          VALUES ('r1', ${MIDNIGHT}, ${DAY}, 'key_1', 'default', 'm', 'chat', 5, '[]', ${leaseUntil}, ledger_clock())`;
      await holdLate();
      assertEquals(await ledger.append([settled("r1")]), [false]);
      assertEquals(await ledger.holds(), []);
      await holdLate();
      assertEquals(await ledger.expire(leaseUntil), []);
      assertEquals([await ledger.holds(), (await readChain(ledger)).length], [[], 1]);
    }),
);

Deno.test("a hold turns into a charge atomically", OPTIONS, () =>
  withLedgers(2, async ([one, other]) => {
    assert(other !== undefined);
    const entry = settled("r");
    // Many holds make their sum slow.
    const crowd = Array.from({ length: 3_000 }, (_, index) => hold({ id: `c${index}`, amount: 0n, claims: [] }));
    await Promise.all(crowd.map((wish) => one.hold(wish)));
    let spent = 0n;
    for (let round = 0; round < 60; round++) {
      spent += entry.cost;
      const claim = ofKey(spent);
      const id = `r${round}`;
      assertEquals(await one.hold(hold({ id, amount: entry.cost, claims: [claim] })), { held: true });
      let isEntered = false;
      const entering = one.append([{ ...entry, id, held: entry.cost }]).then(() => isEntered = true);
      for (let turn = 0; !isEntered; turn++) {
        const [answer, left] = await Promise.all([
          other.hold(hold({ id: `x${round}-${turn}`, amount: 1n, claims: [claim] })),
          availableIn(other, claim),
        ]);
        assertEquals([answer.held, !answer.held && answer.available, left], [false, 0n, 0n], `round ${round}`);
      }
      await entering;
    }
  }));

/** Ends up to this many connections of the nodes in the middle of their work. */
async function cutConnections(sql: Sql, most: number): Promise<void> {
  for (let cut = 0, rounds = 0; cut < most; rounds++) {
    assertLess(rounds, 20_000);
    const rows = await sql`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active' ORDER BY random() LIMIT 1`;
    cut += rows.length;
    await sql`SELECT pg_sleep(0.003)`;
  }
}

Deno.test(
  "lost connections lose and duplicate no entry and no hold",
  OPTIONS,
  () =>
    withLedgers(NODES, async (ledgers, sql) => {
      const claim = ofKey(2000n);
      let isOver = false;
      const cutting = cutConnections(sql, 60).finally(() => isOver = true);
      const [entered, held]: [string[], string[]] = [[], []];
      await Promise.all(ledgers.map(async (ledger, node) => {
        const entering = (async () => {
          for (let batch = 0; !isOver; batch++) {
            const entries = Array.from(
              { length: 60 },
              (_, index) => settled(`${node}-${batch}-${index}`, { keyId: "k" }),
            );
            await eventually(() => ledger.append(entries));
            entered.push(...entries.map(({ id }) => id));
          }
        })();
        // Until the budget is used up, although the connections could continue.
        const holding = Array.from({ length: 4 }, async (_, client) => {
          for (let turn = 0;; turn++) {
            const id = `h-${node}-${client}-${turn}`;
            const answer = await eventually(() => ledger.hold(hold({ id, amount: 5n, claims: [claim] })));
            if (!answer.held) break;
            held.push(id);
          }
        });
        await Promise.all([entering, ...holding]);
      }));
      await cutting;
      assertEquals(held.length, 400);
      assertEquals((await ledgers[0].holds()).map(({ id }) => id).toSorted(), held.toSorted());
      assertEquals(await availableIn(ledgers[0], claim), 0n);
      assertEquals((await readChain(ledgers[0])).map(({ id }) => id).toSorted(), entered.toSorted());
      const [sum] = await ledgers[0].usage({ since: MIDNIGHT, until: MIDNIGHT + 24 * HOUR, by: "key" });
      assertEquals(sum?.requests, entered.length);
      await assertSound(ledgers[0]);
    }),
);

Deno.test(
  "nodes that sum up and enter at once make each sum once",
  OPTIONS,
  () =>
    withLedgers(2, async ([one, ...others]) => {
      const nodes = [one, ...others];
      await Promise.all(nodes.map(async (ledger, node) => {
        for (let batch = 0; batch < 9; batch++) {
          const details = { user: `user-${batch % 3}` };
          await ledger.append(
            Array.from({ length: 500 }, (_, index) => settled(`${node}-${batch}-${index}`, { details })),
          );
          await ledger.sumUp();
        }
      }));
      while ((await one.sumsHead()).seq < 8_000) await Promise.all(nodes.map((ledger) => ledger.sumUp()));
      for (const ledger of nodes) {
        const sums = await ledger.usage({ since: 0, until: MIDNIGHT + 24 * HOUR, by: "user" });
        assertEquals(
          sums.map(({ name, requests }) => [name, requests]),
          [0, 1, 2].map((user) => [`user-${user}`, 3_000]),
        );
      }
      await assertSound(one);
    }),
);
