import { assertEquals } from "@std/assert";
import type { KeyWithBudget } from "../../lib/billing/reports/budget_report.ts";
import { budgetText, keysTable, keyText, limitsText } from "../../lib/cli/key_text.ts";

const KEY: KeyWithBudget = {
  id: "key_1",
  name: "ci",
  group: "default",
  state: "active",
  created_at: "2026-01-01T00:00:00.000Z",
  expires_at: null,
  last_used_at: null,
  revoked_at: null,
  rules: {},
  former_until: null,
  budget: null,
};

const BUDGET = {
  ...{ period: "total" as const, budget_usd: "5", spent_usd: "1.23456", held_usd: "0.1", left_usd: "3.66544" },
  resets_at: null,
};

Deno.test("keysTable() has a line for each key", () => {
  const used = {
    ...KEY,
    id: "key_22",
    last_used_at: "2026-02-01T00:00:00.000Z",
    expires_at: "2027-01-01T00:00:00.000Z",
    budget: BUDGET,
  };
  assertEquals(
    keysTable([KEY, used]),
    `ID      NAME  GROUP    STATE   CREATED                   EXPIRES                   LAST USED                 SPENT/BUDGET USD
key_1   ci    default  active  2026-01-01T00:00:00.000Z  never                     never                     -
key_22  ci    default  active  2026-01-01T00:00:00.000Z  2027-01-01T00:00:00.000Z  2026-02-01T00:00:00.000Z  1.2346/5 in total
`,
  );
});

Deno.test("keyText() lists permissions and limits that are set", () => {
  assertEquals(
    keyText(KEY),
    `Key "ci"
  id:          key_1
  group:       default
  state:       active
  created:     2026-01-01T00:00:00.000Z
  expires:     never
  last used:   never
`,
  );
  assertEquals(
    keyText({ ...KEY, budget: BUDGET }).slice(keyText(KEY).length),
    "  spent:       1.23456 of 5 USD in total, 0.1 held, 3.66544 left\n",
  );
  const text = keyText({
    ...KEY,
    former_until: "2026-01-02T00:00:00.000Z",
    rules: {
      models: ["acme/*", "b/c"],
      endpoints: [],
      ips: ["::1"],
      limits: { requests_per_minute: 60, report_only: true },
      budget: { usd: "5", period: "month" },
    },
  });
  assertEquals(
    text.slice(keyText(KEY).length),
    `  old secret:  valid until 2026-01-02T00:00:00.000Z
  models:      acme/*, b/c
  endpoints:   none
  addresses:   ::1
  limits:      60 requests per minute (reported only)
  budget:      5 USD per month
`,
  );
});

Deno.test("limitsText() describes limits and budgets in words", () => {
  const all = { requests_per_minute: 60, tokens_per_minute: 10_000, concurrency: 4 };
  assertEquals(limitsText({ ...all, report_only: false }), "60 requests and 10000 tokens per minute, 4 concurrent");
  assertEquals(limitsText({ concurrency: 4, report_only: true }), "4 concurrent (reported only)");
  assertEquals(limitsText({ report_only: true }), "none");
  assertEquals(budgetText({ usd: "0.5", period: "total" }), "0.5 USD in total");
});
