import { assert, assertEquals } from "@std/assert";
import { auditLedger } from "../../lib/billing/reports/audit.ts";
import { listBudgets } from "../../lib/billing/reports/budget_report.ts";
import { usageReport } from "../../lib/billing/reports/usage.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import { demoConfiguration } from "./configuration.ts";
import { skipInQuick } from "../support/skip.ts";
import { fillStore } from "./store.ts";
import { monthOfTraffic } from "./traffic.ts";

const VENDORS = { borealis: "http://127.0.0.1:1", meridian: "http://127.0.0.1:2" };
const NOW = Date.UTC(2026, 10, 23, 12);
const VOLUME = skipInQuick("Three quarters of the demo's requests") ? 0.25 : 1;

function configWith(budgets = {}): ReturnType<typeof parseConfig> {
  return parseConfig(demoConfiguration(VENDORS, budgets), (name) => `secret-of-the-demo-${name}`);
}

Deno.test("the month of the demo passes the audit, and its sums are those of its entries", async () => {
  const config = configWith();
  const store = openMemoryStore();
  try {
    const { entries, budgets } = await fillStore(store, { config, now: NOW, volume: VOLUME });
    const report = await auditLedger(store.ledger, { now: () => NOW });
    assertEquals(report.differences, []);
    assertEquals(report.checked.entries, entries.length);
    assert(entries.length > 8_000 * VOLUME, `${entries.length} entries`);
    const { total } = await usageReport({ ...store, config }, { since: 0, until: NOW, by: "model" });
    assertEquals(total.requests, entries.length);
    const lines = await listBudgets({ ...store, config: configWith(budgets) }, { now: NOW });
    const used = lines.map((
      { name, budget_usd, spent_usd },
    ) => [name, Math.round(Number(spent_usd) * 100 / Number(budget_usd))]);
    assertEquals(lines.filter(({ left_usd }) => left_usd.startsWith("-")), [], "budgets are never overspent");
    assertEquals(Object.fromEntries(used), {
      engineering: 83,
      research: 91,
      support: 46,
      "nightly-evals": 97,
      "partner-tern": 100,
    });
  } finally {
    await store.close();
  }
});

Deno.test("the month of the demo is the same for the same seed, and has every kind of outcome", () => {
  const config = configWith();
  const options = { config, now: NOW, volume: VOLUME };
  const entries = monthOfTraffic(options);
  // The last values depend on all random values before them; comparing thousands of objects would take seconds.
  const textOf = (month: readonly unknown[]) =>
    JSON.stringify(month.slice(-200), (_, value) => typeof value === "bigint" ? `${value}` : value);
  assert(textOf(monthOfTraffic(options)) === textOf(entries));
  assert(textOf(monthOfTraffic({ ...options, seed: 2 })) !== textOf(entries));
  const kinds = new Set<string>(entries.map(({ ending, details }) => details?.reason?.code ?? ending));
  for (
    const kind of ["end", "tool_use", "done", "client_disconnected", "limit", "budget", "permission", "invalid"]
      .concat(["model_not_found", "upstream_overloaded", "upstream_timeout", "upstream_failed", "upstream_rejected"])
  ) assert(kinds.has(kind), kind);
  assert(entries.some(({ attempts, status }) => attempts === 2 && status === 200), "a failover");
  assert(entries.every(({ at }, index) => at <= NOW && at >= (entries[index - 1]?.at ?? 0)), "in order");
});
