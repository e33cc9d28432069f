import { assert, assertEquals, assertMatch } from "@std/assert";
import type { Caller } from "../../lib/access/permissions.ts";
import { groupSchema, keyRulesSchema } from "../../lib/config.ts";
import { budgetClaims, budgetError, periodEnd, periodStart, readGroupBudgets } from "../../lib/billing/budgets.ts";
import { parseUsd } from "../../lib/billing/money.ts";
import { anthropicError, openaiError } from "../../lib/protocols/error_bodies.ts";
import { dayOf } from "../../lib/store/days.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import type { Spender, Spending } from "../../lib/store/ledger.ts";

function day(text: string): number {
  return dayOf(Date.parse(`${text}T00:00:00Z`));
}

Deno.test("periodStart() and periodEnd() are at midnight UTC", () => {
  const cases: [moment: string, period: "day" | "week" | "month", start: string, end: string][] = [
    ["2026-11-21T23:59:59.999Z", "day", "2026-11-21", "2026-11-22"],
    ["2026-11-22T00:00:00.000Z", "day", "2026-11-22", "2026-11-23"],
    ["2026-11-21T12:00:00Z", "week", "2026-11-16", "2026-11-23"],
    ["2026-11-16T00:00:00Z", "week", "2026-11-16", "2026-11-23"],
    ["2026-11-15T23:59:59Z", "week", "2026-11-09", "2026-11-16"],
    ["2027-01-01T00:00:00Z", "week", "2026-12-28", "2027-01-04"],
    ["2026-12-31T23:59:59Z", "month", "2026-12-01", "2027-01-01"],
    ["2028-02-29T12:00:00Z", "month", "2028-02-01", "2028-03-01"],
    ["2027-02-28T12:00:00Z", "month", "2027-02-01", "2027-03-01"],
  ];
  for (const [moment, period, start, end] of cases) {
    const now = Date.parse(moment);
    assertEquals([periodStart(period, now), periodEnd(period, now)], [day(start), day(end)], `${period} of ${moment}`);
  }
  assertEquals([periodStart("total", Date.now()), periodEnd("total", Date.now())], [0, undefined]);
});

Deno.test("every day is in exactly one week and one month", () => {
  for (let at = day("2026-01-01"); at < day("2030-01-01"); at++) {
    for (const period of ["week", "month"] as const) {
      const now = at * 86_400_000;
      const [start, end = 0] = [periodStart(period, now), periodEnd(period, now)];
      assert(start <= at && at < end);
      assertEquals(periodStart(period, end * 86_400_000), end);
      if (period === "week") assertEquals(new Date(start * 86_400_000).getUTCDay(), 1);
      else assertEquals(new Date(start * 86_400_000).getUTCDate(), 1);
    }
  }
});

function caller(group: object, rules: object = {}): Caller {
  return {
    keyId: "key_a",
    keyName: "a",
    groupName: "team",
    group: groupSchema.parse(group),
    rules: keyRulesSchema.parse(rules),
  };
}

Deno.test("budgetClaims() includes the key's own budget or the group's each_key budget, and the group's", () => {
  const request = { user: undefined, arrivedAt: Date.parse("2026-11-21T12:00:00Z") };
  const shown = (one: Caller) =>
    budgetClaims(one, request).map(({ scope, id, budget, since }) => [scope, id, budget, since]);
  const group = { budget: { usd: "50" }, key_budget: { usd: "5", period: "day" } };
  const all = ["group", "team", parseUsd("50"), day("2026-11-01")];
  assertEquals(shown(caller({})), []);
  assertEquals(shown(caller(group)), [["key", "key_a", parseUsd("5"), day("2026-11-21")], all]);
  assertEquals(shown(caller(group, { budget: { usd: "0.5", period: "total" } })), [
    ["key", "key_a", parseUsd("0.5"), 0],
    all,
  ]);
});

Deno.test("budgetError() names the budget and its reset, is final, and reveals nothing about other keys", () => {
  const claims = budgetClaims(caller({ budget: { usd: "50" }, key_budget: { usd: "5", period: "day" } }), {
    user: undefined,
    arrivedAt: Date.parse("2026-11-21T12:00:00Z"),
  });
  const [ofKey, ofGroup] = claims.map((claim) =>
    budgetError({ held: false, claim, available: parseUsd("1.25"), onHold: parseUsd("0.75") }, {
      maxCost: parseUsd("2"),
    })
  );
  assertMatch(
    ofKey?.message ?? "",
    /2 USD.*this API key \(5 USD per day, of which 1\.25 USD is left and 0\.75 USD is held/,
  );
  assertMatch(ofKey?.message ?? "", /resets on 2026-11-22 at 00:00 UTC$/);
  assertMatch(ofGroup?.message ?? "", /group "team" \(50 USD per month\)\. It resets on 2026-12-01/);
  assert(!/1\.25|0\.75/.test(ofGroup?.message ?? ""));
  for (const error of [ofKey, ofGroup]) {
    assert(error !== undefined);
    assertEquals([error.status, error.final, error.retryAfterMs], [429, true, undefined]);
    assertEquals([openaiError(error).type, openaiError(error).code], ["insufficient_quota", "insufficient_quota"]);
    assertEquals(anthropicError(error).type, "rate_limit_error");
  }
});

Deno.test("budgetError() reports that a total does not reset, and that nothing is left of an overdrawn budget", () => {
  const [claim] = budgetClaims(caller({ key_budget: { usd: "5", period: "total" } }), {
    user: undefined,
    arrivedAt: Date.UTC(2026, 10, 21),
  });
  assert(claim !== undefined);
  const { message } = budgetError({ held: false, claim, available: -1n, onHold: 0n }, { maxCost: 1n });
  assertMatch(message, /0\.000000000001 USD.*\(5 USD in total, of which 0 USD is left\)\. It does not reset$/);
});

const NOW = Date.UTC(2026, 10, 20, 12);

Deno.test("readGroupBudgets() reads each configured group budget once, for its period", async () => {
  const { groups } = parseConfig({
    groups: { a: { budget: { usd: "5", period: "month" } }, b: {}, c: { budget: { usd: "1", period: "total" } } },
  });
  const claims: Spender[] = [];
  const ledger = {
    spending(spenders: readonly Spender[]): Promise<Spending[]> {
      claims.push(...spenders);
      return spenders[0]?.id === "a" ? Promise.reject(new Error("out of reach")) : Promise.resolve([]);
    },
  };
  await readGroupBudgets({ ledger, config: { groups }, now: NOW });
  const firstOfMonth = Date.UTC(2026, 10, 1) / 86_400_000;
  assertEquals(claims.map(({ scope, id, since }) => [scope, id, since]).toSorted(), [
    ["group", "a", firstOfMonth],
    ["group", "c", 0],
  ]);
});
