import { assertEquals } from "@std/assert";
import { formatUsd } from "../../../lib/billing/money.ts";
import { usageReport } from "../../../lib/billing/reports/usage.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import type { UsageBy } from "../../../lib/store/ledger.ts";
import { DAY_MS, DAY_ONE, entryOf, freeEntryOf, someEntries, tokensOf } from "./entries.ts";

const WHOLE = { since: DAY_ONE, until: DAY_ONE + 3 * DAY_MS };
const NO_KEYS = { keys: openMemoryStore().keys, config: { keys: [] } };

Deno.test("usageReport() sums exactly, whatever it is asked by", async () => {
  const entries = someEntries(2000);
  const ledger = openMemoryStore().ledger;
  await ledger.append(entries);
  const cost = entries.reduce((sum, entry) => sum + entry.cost, 0n);
  for (const by of ["key", "group", "model", "day"] satisfies UsageBy[]) {
    const { lines, total } = await usageReport({ ledger, ...NO_KEYS }, { ...WHOLE, by });
    assertEquals(total.cost_usd, formatUsd(cost), by);
    assertEquals(total.requests, 2000);
    assertEquals(total.failed, entries.filter(({ sheet }) => sheet === undefined).length);
    assertEquals(total.tokens.prompt, entries.reduce((sum, { tokens }) => sum + tokens.prompt, 0));
    assertEquals(lines.reduce((sum, { requests }) => sum + requests, 0), 2000);
  }
});

Deno.test("usageReport() has the dearest first, and days in their order", async () => {
  const ledger = openMemoryStore().ledger;
  const dear = tokensOf({ prompt: 1_000_000 });
  await ledger.append([
    entryOf({ id: "a", keyId: "key_cheap", at: DAY_ONE + DAY_MS, tokens: dear }),
    entryOf({ id: "b", keyId: "key_dear", tokens: tokensOf({ prompt: 1_000_001 }) }),
    freeEntryOf({ id: "c", keyId: "key_none", at: DAY_ONE + 2 * DAY_MS }),
  ]);
  const names = async (by: UsageBy) =>
    (await usageReport({ ledger, ...NO_KEYS }, { ...WHOLE, by })).lines.map(({ name }) => name);
  assertEquals(await names("key"), ["key_dear", "key_cheap", "key_none"]);
  assertEquals(await names("day"), ["2026-11-20", "2026-11-21", "2026-11-22"]);
});

Deno.test("usageReport() names keys of the store and of the configuration, ended ones too, and ids it does not know", async () => {
  const keys = openMemoryStore().keys;
  const record = { hash: "a".repeat(64), group: "default", createdAt: 0, disabled: false, rules: {} };
  await keys.add({ ...record, id: "key_1", name: "ci", revokedAt: 5 });
  const ledger = openMemoryStore().ledger;
  const ids = ["key_1", "config:web", "key_gone"];
  await ledger.append(
    ids.map((keyId, index) => entryOf({ id: `r${index}`, keyId, tokens: tokensOf({ prompt: 9 - index }) })),
  );
  const config = { keys: [{ name: "web", hash: "b".repeat(64), group: "default", rules: {} }] };
  const { lines } = await usageReport({ ledger, keys, config }, { ...WHOLE, by: "key" });
  assertEquals(lines.map(({ id, name }) => [id, name]), [["key_1", "ci"], ["config:web", "web"], [
    "key_gone",
    "key_gone",
  ]]);
});

Deno.test("usageReport() of many keys is what it is of few: in order, named, and exact in sum", async () => {
  const [keys, ledger] = [openMemoryStore().keys, openMemoryStore().ledger];
  const count = 3000;
  const record = { group: "default", createdAt: 0, disabled: false, rules: {} };
  for (let each = 0; each < count; each++) {
    const hash = each.toString(16).padStart(64, "0");
    if (each % 3 > 0) await keys.add({ ...record, hash, id: `key_${each}`, name: `name ${each}` });
  }
  // Many cost the same: those are in the order of their ids.
  const entries = Array.from(
    { length: count },
    (_, each) => entryOf({ id: `r${each}`, keyId: `key_${each}`, tokens: tokensOf({ prompt: each * 7919 % 40 }) }),
  );
  await ledger.append(entries);
  const { lines, total } = await usageReport({ ledger, keys, config: { keys: [] } }, { ...WHOLE, by: "key" });
  const expected = entries.toSorted((a, b) =>
    a.cost === b.cost ? (a.keyId < b.keyId ? -1 : 1) : a.cost > b.cost ? -1 : 1
  );
  assertEquals(
    lines.map(({ id, name, cost_usd }) => [id, name, cost_usd]),
    expected.map(({ keyId, cost }) => {
      return [keyId, Number(keyId.slice(4)) % 3 > 0 ? `name ${keyId.slice(4)}` : keyId, formatUsd(cost)];
    }),
  );
  assertEquals(total.requests, count);
  assertEquals(total.cost_usd, formatUsd(entries.reduce((sum, { cost }) => sum + cost, 0n)));
});

Deno.test("usageReport() takes the beginning in and leaves the end out", async () => {
  const ledger = openMemoryStore().ledger;
  const moments = [DAY_ONE - 1, DAY_ONE, DAY_ONE + DAY_MS - 1, DAY_ONE + DAY_MS];
  await ledger.append(moments.map((at, index) => entryOf({ id: `r${index}`, at })));
  const report = await usageReport({ ledger, ...NO_KEYS }, { since: DAY_ONE, until: DAY_ONE + DAY_MS, by: "model" });
  assertEquals(report.total.requests, 2);
  assertEquals([report.since, report.until], ["2026-11-20T00:00:00.000Z", "2026-11-21T00:00:00.000Z"]);
});

Deno.test("usageReport() of nothing has no lines and a total of 0", async () => {
  const { lines, total } = await usageReport({ ledger: openMemoryStore().ledger, ...NO_KEYS }, { ...WHOLE, by: "key" });
  assertEquals([lines, total.requests, total.cost_usd, total.overrun_usd], [[], 0, "0", "0"]);
});
