import { assertEquals } from "@std/assert";
import { startSummingUp } from "../../lib/cli/maintenance.ts";
import type { LogEntry } from "../../lib/log_events.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import { someEntries } from "../billing/reports/entries.ts";

Deno.test("the serving process brings the sums up to date, also after failures, which it logs once", async () => {
  const store = openMemoryStore();
  await store.ledger.append(someEntries(6_100));
  const logs: LogEntry[] = [];
  const { promise: over, resolve: end } = Promise.withResolvers<void>();
  let failures = 2;
  const ledger = {
    ...store.ledger,
    async sumUp() {
      if (failures-- > 0) throw new Error("disk");
      const isMore = await store.ledger.sumUp();
      if (!isMore) end();
      return isMore;
    },
  };
  const stop = startSummingUp(() => ({ store: { ...store, ledger }, log: (entry) => void logs.push(entry) }), {
    roundMs: 1,
  });
  await over;
  stop();
  assertEquals((await store.ledger.sumsHead()).seq, 6_000);
  assertEquals(logs.map(({ level, event }) => [level, event]), [["warn", "sums_failed"]]);
  await store.close();
});
