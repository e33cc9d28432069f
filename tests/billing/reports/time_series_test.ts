import { assertEquals, assertRejects } from "@std/assert";
import { PrunedEntriesError } from "../../../lib/billing/reports/report_errors.ts";
import { readLatencies } from "../../../lib/billing/reports/latencies.ts";
import { readTimeSeries, SERIES_BY, timeSteps } from "../../../lib/billing/reports/time_series.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import { DAY_MS, DAY_ONE, entryOf, freeEntryOf, someEntries } from "./entries.ts";

const NOW = DAY_ONE + 3 * DAY_MS - 1;

Deno.test("timeSteps() ends with the current step", () => {
  const names = (steps: { since: number; until: number }[]) =>
    steps.map(({ since, until }) => [new Date(since).toISOString(), new Date(until).toISOString()]);
  const now = Date.parse("2026-11-21T09:13:20Z");
  assertEquals(names(timeSteps({ now, unit: "hour", length: 1, count: 2 })), [
    ["2026-11-21T08:00:00.000Z", "2026-11-21T09:00:00.000Z"],
    ["2026-11-21T09:00:00.000Z", "2026-11-21T10:00:00.000Z"],
  ]);
  assertEquals(names(timeSteps({ now, unit: "day", length: 7, count: 1 })), [
    ["2026-11-15T00:00:00.000Z", "2026-11-22T00:00:00.000Z"],
  ]);
});

Deno.test("readTimeSeries() counts every request once, in its step and group", async () => {
  const entries = someEntries(1000);
  const { ledger } = openMemoryStore();
  await ledger.append(entries);
  const facts = { model: "model", key: "keyId", group: "group", upstream: "upstream" } as const;
  for (const by of SERIES_BY) {
    for (const unit of ["day", "hour"] as const) {
      const count = unit === "day" ? 3 : 72;
      const series = await readTimeSeries(ledger, { now: NOW, unit, length: 1, count, by, limit: 2 });
      const sumOf = (part: { cost: bigint; requests: number; failed: number }) => [
        ...[part.requests, part.failed, part.cost],
      ];
      const expected = (wanted: (entry: typeof entries[number]) => boolean) => {
        const of = entries.filter(wanted);
        const failed = of.filter(({ ending }) => ["failed", "refused", "lost"].includes(ending)).length;
        return [of.length, failed, of.reduce((sum, { cost }) => sum + cost, 0n)];
      };
      assertEquals(sumOf(series.total), expected(() => true));
      series.steps.forEach(({ since, until }, step) => {
        const isWithin = ({ at }: { at: number }) => at >= since && at < until;
        const totals = series.totals[step];
        assertEquals(totals && sumOf(totals), expected(isWithin));
        for (const { name, steps } of series.parts) {
          const figures = steps[step];
          assertEquals(figures && sumOf(figures), expected((entry) => isWithin(entry) && entry[facts[by]] === name));
        }
      });
      const listed = series.parts.map(({ name }) => name);
      assertEquals(
        series.others === undefined ? [0, 0, 0n] : sumOf(series.others.total),
        expected((entry) => !listed.includes(entry[facts[by]])),
      );
    }
  }
});

Deno.test("readTimeSeries() shows days with pruned entries, but not their hours", async () => {
  const { ledger } = openMemoryStore();
  await ledger.append([entryOf({ id: "old", at: DAY_ONE }), entryOf({ id: "new", at: NOW })]);
  while (await ledger.prune(DAY_ONE / DAY_MS + 1, Infinity));
  const query = { now: NOW, length: 1, by: "model", limit: 5 } as const;
  assertEquals((await readTimeSeries(ledger, { ...query, unit: "day", count: 3 })).total.requests, 2);
  await assertRejects(() => readTimeSeries(ledger, { ...query, unit: "hour", count: 72 }), PrunedEntriesError);
  await assertRejects(
    () => readTimeSeries(ledger, { ...query, unit: "day", count: 3, by: "upstream" }),
    PrunedEntriesError,
  );
});

Deno.test("readTimeSeries() rejects a period whose entries are pruned while it reads", async () => {
  const { ledger } = openMemoryStore();
  await ledger.append([entryOf({ id: "old", at: DAY_ONE }), entryOf({ id: "new", at: NOW })]);
  const pruned = {
    start: ledger.start,
    async usage(query: Parameters<typeof ledger.usage>[0]) {
      while (await ledger.prune(DAY_ONE / DAY_MS + 1, Infinity));
      return await ledger.usage(query);
    },
  };
  const query = { now: NOW, length: 1, by: "model", limit: 5, unit: "hour", count: 72 } as const;
  await assertRejects(() => readTimeSeries(pruned, query), PrunedEntriesError);
});

Deno.test("readLatencies() reads all requests of a short period, except those without an answer", async () => {
  const { ledger } = openMemoryStore();
  const answers = Array.from(
    { length: 100 },
    (_, index) => entryOf({ id: `r${index}`, at: DAY_ONE + index, firstMs: index + 1, totalMs: 1000 + index }),
  );
  await ledger.append([...answers, freeEntryOf({ id: "failed", at: DAY_ONE, totalMs: 90_000 })]);
  const steps = [
    { since: DAY_ONE, until: DAY_ONE + DAY_MS, requests: 101 },
    { since: DAY_ONE + DAY_MS, until: DAY_ONE + 2 * DAY_MS, requests: 0 },
  ];
  const latencies = { first: { p50: 50, p95: 95 }, total: { p50: 1049, p95: 1094 } };
  assertEquals(await readLatencies(ledger, steps), {
    all: latencies,
    steps: [latencies, {}],
    read: 101,
    isWhole: true,
  });
});

Deno.test("readLatencies() samples a busy period, weighted by steps", async () => {
  const { ledger } = openMemoryStore();
  const entries = (step: number, count: number, firstMs: number) =>
    Array.from({ length: count }, (_, index) =>
      entryOf({
        id: `${step} ${index}`,
        at: DAY_ONE + step * DAY_MS + Math.floor(index * DAY_MS / count),
        firstMs,
        totalMs: firstMs,
      }));
  await ledger.append([...entries(0, 30, 10), ...entries(1, 9_000, 500)]);
  const steps = [30, 9_000].map((requests, step) => ({
    since: DAY_ONE + step * DAY_MS,
    until: DAY_ONE + (step + 1) * DAY_MS,
    requests,
  }));
  const { all, steps: found, read, isWhole } = await readLatencies(ledger, steps);
  assertEquals([read, isWhole], [30 + 120 * 25, false]);
  assertEquals(found.map(({ first }) => first?.p50), [10, 500]);
  assertEquals(all.first, { p50: 500, p95: 500 });
});
