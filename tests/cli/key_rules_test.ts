import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { UsageError } from "../../lib/cli/arguments.ts";
import { type KeyRuleFlags, parseExpiry, parseKeyRules } from "../../lib/cli/key_rules.ts";
import { type KeyRules, keyRulesSchema } from "../../lib/config.ts";

function read(values: KeyRuleFlags["values"], present: KeyRules = {}, ...switches: ("report-only" | "enforce")[]) {
  return parseKeyRules({ values, switches: new Set(switches) }, present);
}

const FULL: KeyRules = {
  models: ["acme/*"],
  endpoints: ["chat"],
  ips: ["10.0.0.0/8"],
  limits: { requests_per_minute: 5, concurrency: 2, report_only: true },
  budget: { usd: "5", period: "week" },
};

Deno.test("parseKeyRules() converts flags to rules", () => {
  const cases: [KeyRuleFlags["values"], ("report-only" | "enforce")[], Record<string, unknown> | undefined][] = [
    [{}, [], undefined],
    [{ group: "ops", expires: "30d" }, [], undefined],
    [{ models: "a/*, b/c" }, [], { models: ["a/*", "b/c"] }],
    [{ endpoints: "chat,models", ips: "10.0.0.0/8,::1" }, [], {
      endpoints: ["chat", "models"],
      ips: ["10.0.0.0/8", "::1"],
    }],
    [{ rpm: "5", tpm: "1000", concurrency: "2" }, [], {
      limits: { requests_per_minute: 5, tokens_per_minute: 1000, concurrency: 2, report_only: false },
    }],
    [{ rpm: "5" }, ["report-only"], { limits: { requests_per_minute: 5, report_only: true } }],
    [{ budget: "5" }, [], { budget: { usd: "5" } }],
    [{ budget: "0.5", period: "day" }, [], { budget: { usd: "0.5", period: "day" } }],
    [{ models: "unset", rpm: "unset", budget: "unset" }, [], {}],
  ];
  for (const [values, switches, rules] of cases) {
    assertEquals(read(values, {}, ...switches), rules, JSON.stringify(values));
  }
});

Deno.test("parseKeyRules() changes only the named rules", () => {
  const cases: [KeyRuleFlags["values"], ("report-only" | "enforce")[], Partial<KeyRules>][] = [
    [{ models: "b/c" }, [], { models: ["b/c"] }],
    [{ rpm: "9" }, [], { limits: { requests_per_minute: 9, concurrency: 2, report_only: true } }],
    [{ concurrency: "unset" }, ["enforce"], { limits: { requests_per_minute: 5, report_only: false } }],
    [{}, ["enforce"], { limits: { requests_per_minute: 5, concurrency: 2, report_only: false } }],
    [{ budget: "7" }, [], { budget: { usd: "7", period: "week" } }],
    [{ period: "total" }, [], { budget: { usd: "5", period: "total" } }],
  ];
  for (const [values, switches, change] of cases) {
    const rules = read(values, FULL, ...switches);
    assertEquals(rules, { ...FULL, ...change }, JSON.stringify(values));
    assertEquals(keyRulesSchema.safeParse(rules).success, true);
  }
  assertEquals(read({ models: "unset", endpoints: "unset", ips: "unset" }, FULL), {
    limits: FULL.limits,
    budget: FULL.budget,
  });
  const { limits: _, ...unlimited } = FULL;
  assertEquals(read({ rpm: "unset", concurrency: "unset" }, FULL), unlimited);
  assertEquals(FULL.models, ["acme/*"]);
});

Deno.test("parseKeyRules() rejects empty values", () => {
  const cases: [KeyRuleFlags["values"], ("report-only" | "enforce")[], string][] = [
    [{ rpm: "many" }, [], 'Expected a whole number or "unset" after --rpm, not "many"'],
    [{ tpm: "-1" }, [], "after --tpm"],
    [{ concurrency: "1.5" }, [], "after --concurrency"],
    [{ rpm: "" }, [], "after --rpm"],
    [{}, ["report-only"], "has none of its own"],
    [{ rpm: "unset" }, ["enforce"], "has none of its own"],
    [{ rpm: "1" }, ["report-only", "enforce"], "cannot be combined"],
    [{ period: "day" }, [], "add --budget"],
    [{ budget: "unset", period: "day" }, [], "--period requires a budget"],
    [{ "user-budget": "unset", "require-user": "yes" }, [], "need a budget of end users"],
  ];
  for (const [values, switches, words] of cases) {
    assertThrows(() => read(values, {}, ...switches), UsageError, words, JSON.stringify(values));
  }
});

Deno.test("parseExpiry() returns a moment, never, or unset", async () => {
  const texts = [undefined, "unset", "1s"];
  assertEquals(await Promise.all(texts.map((text) => parseExpiry(text, 5))), [undefined, null, 1005]);
  await assertRejects(() => parseExpiry("soon", 5), UsageError, 'Cannot read the moment "soon"');
});
