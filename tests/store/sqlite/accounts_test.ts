/** Charges of groups are read while entries are written. */
import { assertEquals, assertGreater, assertLess, assertRejects, assertThrows } from "@std/assert";
import { DatabaseSync } from "node:sqlite";
import { Accounts } from "../../../lib/store/sqlite/accounts.ts";
import type { BudgetClaim } from "../../../lib/store/ledger.ts";
import { openSqliteStore } from "../../../lib/store/sqlite/store.ts";
import { watchTurns } from "../../support/turns.ts";
import { DAY, entry, hold, MIDNIGHT } from "../behaviours_ledger.ts";
import { inFolder } from "../in_folder.ts";
import { availableIn } from "../../support/available.ts";

const OURS: BudgetClaim = { scope: "group", id: "default", budget: 10_000n, since: DAY };
const DAY_MS = 86_400_000;

function atOnce(): never {
  throw new Error("Cannot read the ledger at once");
}

/** Returns the remaining amount of the budget. The answer to a hold that is too large contains it. */
function left(accounts: Accounts): bigint {
  const answer = accounts.hold(hold({ id: "refused", amount: 1_000_000n, claims: [OURS] }));
  if (answer.held) throw new Error("The budget has room for everything");
  return answer.available;
}

Deno.test("Accounts.loadCharged() adds charges made during the read", async () => {
  const accounts = new Accounts(atOnce);
  const sum = Promise.withResolvers<bigint>();
  let begin = () => {};
  const learnt = accounts.loadCharged(OURS, (_, begun) => {
    begin = begun;
    return sum.promise;
  });
  // The reading sees this one.
  accounts.enter(entry({ id: "before", cost: 1n }));
  begin();
  accounts.enter(entry({ id: "after", cost: 20n }));
  accounts.enter(entry({ id: "the day before", at: MIDNIGHT - 1, cost: 300n }));
  accounts.enter(entry({ id: "of another group", group: "other", cost: 4_000n }));
  assertEquals(accounts.hold(hold({ id: "held", amount: 5n, claims: [] })), { held: true });
  sum.resolve(1_001n);
  await learnt;
  assertEquals(left(accounts), 10_000n - 1_001n - 20n - 5n);
  accounts.enter(entry({ id: "held", cost: 7n }));
  assertEquals(left(accounts), 10_000n - 1_001n - 20n - 7n);
  // It is known from here on.
  await accounts.loadCharged(OURS, () => Promise.reject(new Error("asked again")));
});

Deno.test("Accounts.hold() reads synchronously if it cannot wait, and stays correct", async () => {
  let kept = 100n;
  const accounts = new Accounts(() => kept);
  const sum = Promise.withResolvers<bigint>();
  const [one, other] = [1, 2].map(() =>
    accounts.loadCharged(OURS, (_, begun) => {
      begun();
      return sum.promise;
    })
  );
  const enter = (id: string) => {
    kept += 10n;
    accounts.enter(entry({ id, cost: 10n }));
  };
  enter("first");
  assertEquals(left(accounts), 9_890n);
  enter("second");
  sum.resolve(100n);
  await Promise.all([one, other]);
  enter("third");
  assertEquals(left(accounts), 10_000n - kept);
});

Deno.test("Accounts.loadCharged() leaves nothing behind after an error", async () => {
  const accounts = new Accounts(atOnce);
  await assertRejects(() =>
    accounts.loadCharged(OURS, (_, begun) => {
      begun();
      return Promise.reject(new Error("away"));
    })
  );
  accounts.enter(entry({ cost: 10n }));
  assertThrows(() => left(accounts), Error, "at once");
  await accounts.loadCharged(OURS, (_, begun) => {
    begun();
    return Promise.resolve(10n);
  });
  assertEquals(left(accounts), 9_990n);
});

/** Reads the sums of a group while entries are written. Returns the number of entries that were written by the end. */
async function readBesideWriters(path: string): Promise<number> {
  await openSqliteStore(path, { own: true }).close();
  const days = 40;
  const keys = 3_000;
  const db = new DatabaseSync(path);
  db.exec(
    `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${days * keys - 1})
       INSERT INTO days SELECT ${DAY} + i / ${keys}, 'key_' || (i % ${keys}), iif(i % 2, 'default', 'other'), 'm',
         1, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0 FROM n`,
  );
  db.close();
  const { ledger, close } = openSqliteStore(path, { own: true });
  const claim = { ...OURS, budget: 0n, since: DAY + 10 };
  let expected = -BigInt((days - 10) * keys / 2 * 10);
  using turns = watchTurns();
  let over = false;
  const requested = availableIn(ledger, claim).finally(() => over = true);
  let number = 0;
  let meanwhile = 0;
  while (!over) {
    // Days and keys that were passed already, those to come, and unknown ones.
    for (const at of [0, 10, 25, 49, 60]) {
      const keyId = `key_${number * 7919 % (keys + 100)}`;
      await ledger.append([
        entry({ id: `a${number}`, at: MIDNIGHT + at * DAY_MS, keyId, model: "m", cost: 3n }),
        entry({ id: `b${number++}`, at: MIDNIGHT + at * DAY_MS, keyId, group: "other", cost: 1_000n }),
      ]);
      if (at >= 10) expected -= 3n;
      if (!over) meanwhile++;
    }
  }
  await requested;
  assertEquals(await availableIn(ledger, claim), expected);
  assertGreater(turns.count(), 2);
  assertLess(turns.longestWork(), 1_000);
  await close();
  const again = openSqliteStore(path, { own: true });
  assertEquals(await availableIn(again.ledger, claim), expected);
  assertEquals(await availableIn(again.ledger, { ...claim, id: "nobody" }), 0n);
  await again.close();
  return meanwhile;
}

Deno.test("the SQLite ledger sums a group in slices, correctly during concurrent changes", () =>
  inFolder(async (folder) => {
    // On a busy machine the first write may take longer than all of the reading.
    for (let tries = 1; await readBesideWriters(`${folder}/${tries}.db`) === 0; tries++) assertLess(tries, 20);
  }));
