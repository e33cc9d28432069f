import { assertEquals } from "@std/assert";
import { dayOf } from "../../../lib/store/days.ts";
import type { Entry, LedgerStore } from "../../../lib/store/ledger.ts";
import { openStore } from "../../../lib/store/open.ts";
import { DAY, entry, MIDNIGHT } from "../behaviours_ledger.ts";
import { inFolder } from "../in_folder.ts";

const KEYS = 700;

Deno.test("the SQLite ledger returns each sum of a day with many keys once", async () => {
  await inFolder(async (folder) => {
    const store = await openStore({ kind: "sqlite", path: `${folder}/sluice.db` }, { own: true });
    await assertEach(store.ledger);
    await store.close();
  });
});

/** Three days, each with more keys than are read at once. */
async function assertEach(ledger: LedgerStore): Promise<void> {
  const all = Array.from({ length: KEYS * 3 }, (_, index) =>
    entry({
      id: `many${index}`,
      keyId: `${["key", "Key", "字", "😀"][index % 4]}_${index % KEYS}`,
      at: MIDNIGHT + Math.floor(index / KEYS) * 86_400_000,
    }));
  for (let at = 0; at < all.length; at += 300) await ledger.append(all.slice(at, at + 300));
  const namesOf = (entries: readonly Entry[]) => entries.map(({ at, keyId }) => `${dayOf(at)} ${keyId}`).toSorted();
  const cases = [[0, undefined, 3], [DAY + 1, undefined, 3], [0, 1, 1], [0, KEYS + 1, 2], [DAY + 3, 1, 3]] as const;
  for (const [since, enough, until] of cases) {
    const sums = await ledger.days(since, enough);
    const expected = all.slice(Math.max(since - DAY, 0) * KEYS, until * KEYS);
    assertEquals(sums.map(({ day, keyId }) => `${day} ${keyId}`).toSorted(), namesOf(expected));
    assertEquals(sums.every(({ requests, cost }) => requests === 1 && cost === 100n), true);
    assertEquals(sums.map(({ day }) => day), sums.map(({ day }) => day).toSorted((a, b) => a - b));
  }
}
