import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { PrunedEntriesError, ReportQueryError } from "../../../lib/billing/reports/report_errors.ts";
import { readUsageFilter } from "../../../lib/billing/reports/usage_filter.ts";
import { formatUsd } from "../../../lib/billing/money.ts";
import { readGroupings, type UsageGrouping, usageReport } from "../../../lib/billing/reports/usage.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import { DAY_MS, DAY_ONE, entryOf, freeEntryOf, someEntries, tokensOf } from "./entries.ts";

const WHOLE = { since: DAY_ONE, until: DAY_ONE + 3 * DAY_MS };
const NO_KEYS = { keys: openMemoryStore().keys, config: { keys: [], groups: {}, models: [] } };

Deno.test("usageReport() sums exactly for every grouping", async () => {
  const entries = someEntries(2000);
  const ledger = openMemoryStore().ledger;
  await ledger.append(entries);
  const cost = entries.reduce((sum, entry) => sum + entry.cost, 0n);
  for (const by of ["key", "group", "model", "day"] satisfies UsageGrouping[]) {
    const { lines, total } = await usageReport({ ledger, ...NO_KEYS }, { ...WHOLE, by });
    assertEquals(total.cost_usd, formatUsd(cost), by);
    assertEquals(total.requests, 2000);
    assertEquals(total.failed, entries.filter(({ sheet }) => sheet === undefined).length);
    assertEquals(total.tokens.prompt, entries.reduce((sum, { tokens }) => sum + tokens.prompt, 0));
    assertEquals(lines.reduce((sum, { requests }) => sum + requests, 0), 2000);
  }
});

Deno.test("usageReport() has the share of the input that came from prompt caches, rounded down", async () => {
  const ledger = openMemoryStore().ledger;
  const cached = tokensOf({ prompt: 100, input_cache_read: 199, input_cache_write_1h: 1, completion: 9 });
  await ledger.append([
    entryOf({ id: "a", keyId: "key_cached", tokens: cached }),
    entryOf({ id: "b", keyId: "key_plain", tokens: tokensOf({ prompt: 100 }) }),
    freeEntryOf({ id: "c", keyId: "key_none" }),
  ]);
  const { lines, total } = await usageReport({ ledger, ...NO_KEYS }, { ...WHOLE, by: "key" });
  const shares = Object.fromEntries(lines.map(({ name, cached_percent }) => [name, cached_percent]));
  assertEquals([shares, total.cached_percent], [{ key_cached: 66, key_plain: 0, key_none: null }, 49]);
});

Deno.test("usageReport() orders by cost, and days by date", async () => {
  const ledger = openMemoryStore().ledger;
  const dear = tokensOf({ prompt: 1_000_000 });
  await ledger.append([
    entryOf({ id: "a", keyId: "key_cheap", at: DAY_ONE + DAY_MS, tokens: dear }),
    entryOf({ id: "b", keyId: "key_dear", tokens: tokensOf({ prompt: 1_000_001 }) }),
    freeEntryOf({ id: "c", keyId: "key_none", at: DAY_ONE + 2 * DAY_MS }),
  ]);
  const names = async (by: UsageGrouping) =>
    (await usageReport({ ledger, ...NO_KEYS }, { ...WHOLE, by })).lines.map(({ name }) => name);
  assertEquals(await names("key"), ["key_dear", "key_cheap", "key_none"]);
  assertEquals(await names("day"), ["2026-11-20", "2026-11-21", "2026-11-22"]);
});

Deno.test("usageReport() names stored, configured and revoked keys, and shows unknown ids", async () => {
  const keys = openMemoryStore().keys;
  const record = { hash: "a".repeat(64), group: "default", createdAt: 0, disabled: false, rules: {} };
  await keys.add({ ...record, id: "key_1", name: "ci", revokedAt: 5 });
  const ledger = openMemoryStore().ledger;
  const ids = ["key_1", "config:web", "key_gone"];
  await ledger.append(
    ids.map((keyId, index) => entryOf({ id: `r${index}`, keyId, tokens: tokensOf({ prompt: 9 - index }) })),
  );
  const config = {
    keys: [{ name: "web", hash: "b".repeat(64), group: "default", rules: {} }],
    groups: {},
    models: [],
  };
  const { lines } = await usageReport({ ledger, keys, config }, { ...WHOLE, by: "key" });
  assertEquals(lines.map(({ id, name }) => [id, name]), [["key_1", "ci"], ["config:web", "web"], [
    "key_gone",
    "key_gone",
  ]]);
});

Deno.test("usageReport() orders, names and sums many keys like few", async () => {
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
  const { lines, total } = await usageReport({ ledger, keys, config: { keys: [], groups: {}, models: [] } }, {
    ...WHOLE,
    by: "key",
  });
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

Deno.test("usageReport() includes the start and excludes the end of the period", async () => {
  const ledger = openMemoryStore().ledger;
  const moments = [DAY_ONE - 1, DAY_ONE, DAY_ONE + DAY_MS - 1, DAY_ONE + DAY_MS];
  await ledger.append(moments.map((at, index) => entryOf({ id: `r${index}`, at })));
  const report = await usageReport({ ledger, ...NO_KEYS }, { since: DAY_ONE, until: DAY_ONE + DAY_MS, by: "model" });
  assertEquals(report.total.requests, 2);
  assertEquals([report.since, report.until], ["2026-11-20T00:00:00.000Z", "2026-11-21T00:00:00.000Z"]);
});

Deno.test("usageReport() for no requests has no lines and a total of 0", async () => {
  const { lines, total } = await usageReport({ ledger: openMemoryStore().ledger, ...NO_KEYS }, { ...WHOLE, by: "key" });
  assertEquals([lines, total.requests, total.cost_usd, total.overrun_usd], [[], 0, "0", "0"]);
});

Deno.test("readGroupings() reads one or two different groupings", () => {
  assertEquals(readGroupings("model"), { by: "model" });
  assertEquals(readGroupings("day,key"), { by: "day", thenBy: "key" });
  for (
    const text of ["", "hour", "group,hour", "group,", "group,group", "key,group,model", "upstream,model", "users"]
  ) {
    assertThrows(() => readGroupings(text), ReportQueryError, "Cannot sum up by", text);
  }
});

Deno.test("usageReport() by two groupings keeps lines of one name together, and names keys in both", async () => {
  const { keys, ledger } = openMemoryStore();
  const record = { hash: "a".repeat(64), group: "default", createdAt: 0, disabled: false, rules: {} };
  await keys.add({ ...record, id: "key_1", name: "ci" });
  const used: [group: string, keyId: string, prompt: number][] = [
    ["small", "key_1", 9],
    ["big", "key_1", 3],
    ["big", "key_2", 8],
    ["big", "key_1", 2],
  ];
  await ledger.append(
    used.map(([group, keyId, prompt], index) =>
      entryOf({ id: `r${index}`, group, keyId, at: DAY_ONE + index * DAY_MS / 2, tokens: tokensOf({ prompt }) })
    ),
  );
  const report = (text: string) => usageReport({ ledger, ...NO_KEYS, keys }, { ...WHOLE, ...readGroupings(text) });
  const lines = async (text: string) =>
    (await report(text)).lines.map(({ id, name, then_id, then_name, tokens }) => [
      ...[id, name, then_id, then_name, tokens.prompt],
    ]);
  assertEquals(await lines("group,key"), [
    [undefined, "big", "key_2", "key_2", 8],
    [undefined, "big", "key_1", "ci", 5],
    [undefined, "small", "key_1", "ci", 9],
  ]);
  assertEquals(await lines("key,day"), [
    ["key_1", "ci", undefined, "2026-11-20", 12],
    ["key_1", "ci", undefined, "2026-11-21", 2],
    ["key_2", "key_2", undefined, "2026-11-21", 8],
  ]);
  assertEquals((await lines("day,group")).map(([, name, , then]) => [name, then]), [
    ["2026-11-20", "small"],
    ["2026-11-20", "big"],
    ["2026-11-21", "big"],
  ]);
  const { by, then_by, total } = await report("day,group");
  assertEquals([by, then_by, total.tokens.prompt], ["day", "group", 22]);
});

Deno.test("readUsageFilter() finds keys by name and id, and rejects unknown groups and models", async () => {
  const { keys, ledger } = openMemoryStore();
  const record = { hash: "a".repeat(64), group: "default", createdAt: 0, disabled: false, rules: {} };
  await keys.add({ ...record, id: "key_1", name: "ci" });
  const config = {
    keys: [{ name: "web", hash: "b".repeat(64), group: "default", rules: {} }],
    groups: {},
    models: [],
  };
  for (
    const [key, keyId] of [["ci", "key_1"], ["key_1", "key_1"], ["web", "config:web"], ["config:web", "config:web"]]
  ) {
    assertEquals((await readUsageFilter({ key }, { keys, config })).keyId, keyId);
  }
  await assertRejects(() => readUsageFilter({ key: "x" }, { keys, config }), ReportQueryError, 'Cannot find key "x"');
  await ledger.append([entryOf({ id: "a", group: "gone", model: "acme/gone" })]);
  const report = (only: object) => usageReport({ ledger, keys, config }, { ...WHOLE, by: "key", only });
  assertEquals((await report({ group: "gone", model: "acme/gone" })).total.requests, 1);
  await assertRejects(() => report({ group: "gnoe" }), ReportQueryError, 'Cannot find group "gnoe"');
  await assertRejects(() => report({ model: "acme/x" }), ReportQueryError, 'Cannot find model "acme/x"');
});

Deno.test("usageReport() by user and tag reads single entries, and counts each request once in its total", async () => {
  const { keys, ledger } = openMemoryStore();
  const parts = { ledger, ...NO_KEYS, keys };
  await ledger.append([
    entryOf({ id: "a", details: { user: "ann", tags: ["web", "beta"] } }),
    entryOf({ id: "b", at: DAY_ONE + DAY_MS, details: { user: "ann", tags: ["web"] } }),
    entryOf({ id: "c", at: DAY_ONE + DAY_MS, details: { tags: ["web"] } }),
    freeEntryOf({ id: "d", at: DAY_ONE + DAY_MS }),
  ]);
  const lines = async (text: string, only = {}) => {
    const { lines, total } = await usageReport(parts, { ...WHOLE, ...readGroupings(text), only });
    return [lines.map(({ name, then_name, requests }) => [name, then_name, requests]), total.requests];
  };
  assertEquals(await lines("tag"), [[["web", undefined, 3], ["beta", undefined, 1], ["", undefined, 1]], 4]);
  assertEquals(await lines("user"), [[["ann", undefined, 2], ["", undefined, 2]], 4]);
  assertEquals(await lines("user,tag", { tag: "web" }), [[["ann", "web", 2], ["ann", "beta", 1], ["", "web", 1]], 3]);
  assertEquals(await lines("model", { user: "ann" }), [[["acme/one", undefined, 2]], 2]);
  assertEquals(await lines("tag,user", { user: "nobody" }), [[], 0]);
  while (await ledger.prune(DAY_ONE / DAY_MS + 1, Infinity));
  for (
    const query of [readGroupings("user"), readGroupings("day,tag"), { by: "key" as const, only: { user: "ann" } }]
  ) {
    const error = await assertRejects(() => usageReport(parts, { ...WHOLE, ...query }), PrunedEntriesError);
    assertEquals(error.from, "2026-11-21");
    await usageReport(parts, { ...WHOLE, ...query, since: DAY_ONE + DAY_MS });
  }
});
