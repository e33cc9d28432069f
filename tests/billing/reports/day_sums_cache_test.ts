import { assertEquals } from "@std/assert";
import { rememberDays, sumByDays } from "../../../lib/billing/reports/day_sums_cache.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import { DAY_MS, DAY_ONE, entryOf, someEntries } from "./entries.ts";

const PERIOD = { since: DAY_ONE, until: DAY_ONE + 3 * DAY_MS };

Deno.test("days are summed again only when they have other requests", async () => {
  const store = openMemoryStore();
  const { ledger } = store;
  const summed: number[] = [];
  const read = () =>
    sumByDays(ledger, PERIOD, {
      owner: ledger,
      kind: "test",
      async sumDay({ since, until }) {
        summed.push((since - DAY_ONE) / DAY_MS);
        return (await ledger.entriesWithin({ since, until, after: 0, limit: 1000 })).map(({ id }) => id);
      },
    });
  try {
    await ledger.append([entryOf({ id: "a" }), entryOf({ id: "b", at: DAY_ONE + 2 * DAY_MS })]);
    assertEquals(await read(), ["a", "b"]);
    assertEquals(await read(), ["a", "b"]);
    assertEquals(summed, [0, 2]);
    await ledger.append([entryOf({ id: "c", at: DAY_ONE + 2 * DAY_MS + 1 })]);
    assertEquals(await read(), ["a", "b", "c"]);
    assertEquals(summed, [0, 2, 2]);
  } finally {
    await store.close();
  }
});

Deno.test("a ledger that remembers days has the sums of the ledger, also after more entries", async () => {
  const store = openMemoryStore();
  const { ledger } = store;
  const remembered = rememberDays(ledger);
  const entries = someEntries(300).map((entry, index) => ({
    ...entry,
    details: { ...entry.details, user: `user-${index % 7}`, tags: ["a", `t${index % 3}`] },
  }));
  try {
    for (const from of [0, 150]) {
      await ledger.append(entries.slice(from, from + 150));
      for (const [by, thenBy] of [["user"], ["tag"], ["tag", "user"], ["user", "day"], ["model"]] as const) {
        for (const period of [PERIOD, { ...PERIOD, since: PERIOD.since + 1 }]) {
          const query = { ...period, by, ...(thenBy && { thenBy }) };
          const sorted = (sums: Awaited<ReturnType<typeof ledger.usage>>) =>
            sums.toSorted((one, other) => `${one.name} ${one.thenName}` < `${other.name} ${other.thenName}` ? -1 : 1);
          assertEquals(sorted(await remembered.usage(query)), sorted(await ledger.usage(query)));
        }
      }
    }
  } finally {
    await store.close();
  }
});
