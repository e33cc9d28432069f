/** `GET /v1/usage` while requests are under way, and the budgets that operators see meanwhile. */
import { assertEquals } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { listBudgets } from "../../../lib/billing/reports/budget_report.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import type { Store } from "../../../lib/store/store.ts";
import { model, startGateway, type TestGateway, type TestKey } from "../../support/gateway.ts";
import { until } from "../../support/soon.ts";
import { answer, asking, COST, startBudgeted } from "./budgeted.ts";
import { usd } from "./bills.ts";

async function usageOf(
  { url, key: own }: TestGateway,
  { key }: TestKey = own,
  { query = "", headers = {} }: { query?: string; headers?: Record<string, string> } = {},
): Promise<JsonObject> {
  const response = await fetch(`${url}/v1/usage${query}`, { headers: { authorization: `Bearer ${key}`, ...headers } });
  assertEquals([response.status, response.headers.get("cache-control")], [200, "no-store"]);
  return await response.json();
}

Deno.test("a running request is held and reserves limits, and an ended one is spent", async () => {
  const first = Promise.withResolvers<void>();
  const reported = answer("chat");
  await using budgeted = startBudgeted({
    async says(request) {
      await first.promise;
      return reported(request);
    },
    groups: {
      default: {
        budget: { usd: "1", period: "total" },
        limits: { requests_per_minute: 5, report_only: true },
        key_budget: { usd: "0.5", period: "day" },
        key_limits: { requests_per_minute: 10, concurrency: 3 },
      },
    },
  });
  const { gateway } = budgeted;
  const other = await gateway.addKey();
  const state = async (key?: TestKey) => {
    const { budgets, limits, spent, user_budget } = await usageOf(gateway, key);
    assertEquals(user_budget, null);
    return {
      spent: (spent as JsonObject[]).map(({ spent_usd }) => spent_usd),
      budgets: (budgets as JsonObject[]).map(({ owner, spent_usd, held_usd, left_usd }) => [
        ...[owner, spent_usd, held_usd, left_usd],
      ]),
      limits: (limits as JsonObject[]).map(({ owner, unit, left }) => [owner, unit, left]),
    };
  };
  const untouched = (left: string) => ({
    spent: ["0", "0"],
    budgets: [["key", "0", "0", "0.5"], ["group", undefined, undefined, left]],
    limits: [["key", "requests", 10], ["key", "concurrency", 3]],
  });
  assertEquals(await state(), untouched("1"));
  const running = gateway.ask("chat", asking("chat"));
  await budgeted.upstream.until(1);
  assertEquals(await state(), {
    spent: ["0", "0"],
    budgets: [["key", "0", usd(COST), usd(500_000_000_000n - COST)], [
      ...["group", undefined, undefined, usd(1_000_000_000_000n - COST)],
    ]],
    limits: [["key", "requests", 9], ["key", "concurrency", 2]],
  });
  assertEquals(await state(other), untouched(usd(1_000_000_000_000n - COST)));
  const { store, gateway: { config } } = gateway;
  const lines = async () =>
    (await listBudgets({ ...store, config }, { now: 0 })).map(({ scope, spent_usd, held_usd }) => [
      ...[scope, spent_usd, held_usd],
    ]);
  assertEquals(await lines(), [["group", "0", usd(COST)], ["key", "0", usd(COST)], ["key", "0", "0"]]);
  first.resolve();
  await (await running).text();
  await gateway.gateway.ledger.flush();
  assertEquals(await state(), {
    spent: [usd(COST), usd(COST)],
    budgets: [["key", usd(COST), "0", usd(500_000_000_000n - COST)], [
      ...["group", undefined, undefined, usd(1_000_000_000_000n - COST)],
    ]],
    limits: [["key", "requests", 9], ["key", "concurrency", 3]],
  });
  assertEquals(await lines(), [["group", usd(COST), "0"], ["key", usd(COST), "0"], ["key", "0", "0"]]);
  assertEquals((await store.ledger.entries({ after: 0, limit: 10 })).length, 1);
});

Deno.test("the holder of a key reads the limits of the models that it may use", async () => {
  const limits = { requests_per_minute: 4, tokens_per_minute: 900_000 };
  const target = [{ upstream: "embedded", model: "echo" }];
  await using gateway = startGateway({
    models: [
      model("acme/one", target, { limits }),
      model("acme/free", target),
      model("acme/watched", target, { limits: { ...limits, report_only: true } }),
      model("acme/old", target, { limits, expiration_date: "1969-01-01" }),
      model("other/two", target, { limits }),
    ],
    groups: { default: { models: ["acme/*"], key_limits: { requests_per_minute: 10 } } },
  }, { described: false });
  const other = await gateway.addKey();
  await (await gateway.ask("chat", { model: "acme/one", messages: [{ role: "user", content: "Hi" }] }, { key: other }))
    .text();
  await gateway.gateway.ledger.flush();
  const reported = (await usageOf(gateway)).limits as JsonObject[];
  assertEquals(
    reported.map(({ owner, model, unit, limit, used, left }) => [owner, model, unit, limit, used, left]).slice(0, 2),
    [
      ["key", undefined, "requests", 10, 0, 10],
      ["model", "acme/one", "requests", 4, 1, 3],
    ],
  );
  assertEquals(reported.slice(2).map(({ owner, model, unit, limit }) => [owner, model, unit, limit]), [
    ["model", "acme/one", "tokens", 900_000],
  ]);
  assertEquals(
    reported.slice(1).every(({ limit, used, left }) => Number(used) > 0 && Number(used) + Number(left) === limit),
    true,
  );
  assertEquals(reported.map(({ resets_at }) => typeof resets_at), ["object", "string", "string"]);
});

Deno.test("a key without the usage endpoint may not read its usage", async () => {
  await using budgeted = startBudgeted({ groups: { default: { endpoints: ["chat"] } } });
  const { url, key } = budgeted.gateway;
  const response = await fetch(`${url}/v1/usage`, { headers: { authorization: `Bearer ${key.key}` } });
  assertEquals([response.status, (await response.json()).error.message], [
    403,
    'This API key may not use the endpoint "usage"',
  ]);
});

Deno.test("the holder of a key reads the budget of end users, and the state of the one it names", async () => {
  await using budgeted = startBudgeted({
    groups: { default: { user_budget: { usd: "1", period: "total", require_user: true } } },
  });
  const { gateway } = budgeted;
  const plain = await gateway.addKey({ rules: { user_budget: { usd: "0.25", period: "day", require_user: false } } });
  const name = "J\u00f6rg & co";
  await (await gateway.ask("chat", asking("chat", { user: name }))).text();
  await (await gateway.ask("chat", asking("chat"), { key: plain })).text();
  await gateway.gateway.ledger.flush();
  const budgetOf = async (...[key, request]: [TestKey?, Parameters<typeof usageOf>[2]?]) =>
    (await usageOf(gateway, key, request)).user_budget;
  const rule = { period: "total", budget_usd: "1", require_user: true };
  const unspent = { spent_usd: "0", held_usd: "0", left_usd: "1", resets_at: null };
  const spent = { ...unspent, spent_usd: usd(COST), left_usd: usd(1_000_000_000_000n - COST) };
  assertEquals(await budgetOf(), rule);
  const query = `?user=${encodeURIComponent(name)}`;
  assertEquals(await budgetOf(undefined, { query }), { ...rule, user: name, ...spent });
  const headers = { "x-sluice-user": "other" };
  assertEquals(await budgetOf(undefined, { headers }), { ...rule, user: "other", ...unspent });
  assertEquals(await budgetOf(undefined, { query, headers }), { ...rule, user: name, ...spent });
  // The key's own rule goes before the group's; each key has end users of its own.
  const own = await budgetOf(plain, { query }) as JsonObject;
  assertEquals([own.budget_usd, own.require_user, own.spent_usd], ["0.25", false, "0"]);
  const unnamed = await budgetOf(plain, { query: "?user=" }) as JsonObject;
  assertEquals([unnamed.user, unnamed.spent_usd], ["", usd(COST)]);
  const malformed = await fetch(`${gateway.url}/v1/usage`, {
    headers: { authorization: `Bearer ${plain.key}`, "x-sluice-user": "a".repeat(257) },
  });
  assertEquals(malformed.status, 400);
  await malformed.body?.cancel();
});

Deno.test("one key has only a few concurrent reads of its usage, and other keys are not delayed", async () => {
  const store = openMemoryStore();
  const released = Promise.withResolvers<void>();
  const readKeys: string[] = [];
  const ledger: Store["ledger"] = {
    ...store.ledger,
    async spending(spenders) {
      readKeys.push(spenders[0]?.id ?? "");
      await released.promise;
      return await store.ledger.spending(spenders);
    },
  };
  await using gateway = startGateway({}, { store: { ...store, ledger } });
  const other = await gateway.addKey();
  const ask = ({ key }: TestKey) => fetch(`${gateway.url}/v1/usage`, { headers: { authorization: `Bearer ${key}` } });
  const refused = Promise.withResolvers<string | null>();
  const asked = Promise.all(Array.from({ length: 60 }, async () => {
    const response = await ask(gateway.key);
    if (response.status === 429) refused.resolve(response.headers.get("retry-after"));
    await response.body?.cancel();
    return response.status;
  }));
  asked.catch(refused.reject);
  assertEquals(await refused.promise, "2");
  const ofOther = usageOf(gateway, other);
  await until("the other key reads", () => readKeys.includes(other.id));
  assertEquals(readKeys, [gateway.key.id, gateway.key.id, gateway.key.id, other.id]);
  released.resolve();
  await ofOther;
  const statuses = await asked;
  assertEquals(
    [statuses.filter((status) => status === 200).length, statuses.filter((status) => status === 429).length],
    [51, 9],
  );
});
