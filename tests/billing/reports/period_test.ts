import { assertEquals, assertThrows } from "@std/assert";
import { readPeriod } from "../../../lib/billing/reports/period.ts";

const NOW = Date.UTC(2026, 10, 21, 15, 30);

Deno.test("readPeriod() reads spans, days and moments, and defaults to the current month", () => {
  const cases: [{ since?: string; until?: string }, string, string][] = [
    [{}, "2026-11-01T00:00:00.000Z", "2026-11-22T00:00:00.000Z"],
    [{ since: "7d" }, "2026-11-14T15:30:00.000Z", "2026-11-22T00:00:00.000Z"],
    [{ since: "2026-10-01", until: "2026-11-01" }, "2026-10-01T00:00:00.000Z", "2026-11-01T00:00:00.000Z"],
    [{ since: "2h", until: "1h" }, "2026-11-21T13:30:00.000Z", "2026-11-21T14:30:00.000Z"],
    [{ since: "2026-11-01T02:00:00+02:00" }, "2026-11-01T00:00:00.000Z", "2026-11-22T00:00:00.000Z"],
  ];
  for (const [typed, since, until] of cases) {
    const period = readPeriod(typed, NOW);
    assertEquals([period.since, period.until].map((at) => new Date(at).toISOString()), [since, until]);
  }
});

Deno.test("readPeriod() reads named days and months in UTC", () => {
  const cases: [name: string, now: string, since: string, until: string][] = [
    ["today", "2026-11-21T15:30", "2026-11-21", "2026-11-22"],
    ["yesterday", "2026-11-01T00:00", "2026-10-31", "2026-11-01"],
    ["last-month", "2026-01-31T23:59", "2025-12-01", "2026-01-01"],
    ["last-month", "2026-03-01T00:00", "2026-02-01", "2026-03-01"],
    ["2026-10", "2026-11-21T15:30", "2026-10-01", "2026-11-01"],
    ["2024-02", "2026-11-21T15:30", "2024-02-01", "2024-03-01"],
    ["2026-12", "2026-11-21T15:30", "2026-12-01", "2027-01-01"],
  ];
  for (const [period, now, since, until] of cases) {
    const read = readPeriod({ period }, Date.parse(`${now}:00Z`));
    assertEquals([read.since, read.until], [Date.parse(since), Date.parse(until)], `${period} at ${now}`);
  }
  for (const period of ["", "2026-13", "2026-1", "tomorrow", "2026-10-01", "26-10"]) {
    assertThrows(() => readPeriod({ period }, NOW), RangeError, `Cannot read the period "${period}"`);
  }
  assertThrows(
    () => readPeriod({ period: "today", since: "1d" }, NOW),
    RangeError,
    "Cannot use a named period together",
  );
});

Deno.test("readPeriod() rejects invalid moments, and a period that ends before it begins", () => {
  for (const typed of [{ since: "yesterday" }, { until: "2026-02-31" }, { since: "" }, { since: "7w" }]) {
    assertThrows(() => readPeriod(typed, NOW), RangeError, "Cannot read the ");
  }
  assertThrows(() => readPeriod({ since: "2026-12-01" }, NOW), RangeError, "Cannot sum up: the period ends at");
  assertThrows(() => readPeriod({ since: "1d", until: "1d" }, NOW), RangeError, "Cannot sum up");
});
