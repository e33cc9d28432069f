/** Budgets and limits of groups in the metrics. */
import { assertEquals } from "@std/assert";
import { metrics } from "../../../lib/status/metrics.ts";
import { model, startGateway, type TestGateway } from "../../support/gateway.ts";
import { prompt } from "../../upstream/replies.ts";
import { readExposition } from "./exposition.ts";

async function metricsOf({ url }: TestGateway) {
  return readExposition(await (await fetch(`${url}/metrics`)).text());
}

const ROW = model("acme/one", [{ upstream: "embedded", model: "echo" }], {
  pricing: { prompt: "0", completion: "0.01" },
});

Deno.test("metrics show budgets and limits of groups with their rest", async () => {
  await using gateway = startGateway({
    models: [ROW],
    groups: {
      default: { budget: { usd: "0.3", period: "total" }, limits: { requests_per_minute: 5, concurrency: 2 } },
      other: { budget: { usd: "1", period: "day" }, limits: { tokens_per_minute: 7 } },
      bare: {},
    },
  });
  const read = async () => {
    const families = await metricsOf(gateway);
    const of = (name: string) => {
      const family = families.get(`sluice_group_${name}`);
      assertEquals(family?.type, "gauge");
      return family?.samples.map(({ labels: { group, unit }, value }) => [group, ...unit ? [unit] : [], value]);
    };
    return { budget: of("budget_usd"), left: of("budget_left_usd"), limit: of("limit"), limitLeft: of("limit_left") };
  };
  assertEquals(await read(), {
    budget: [["default", "0.3"], ["other", "1"]],
    left: [["default", "0.3"], ["other", "1"]],
    limit: [["default", "requests", "5"], ["default", "concurrency", "2"], ["other", "tokens", "7"]],
    limitLeft: [["default", "requests", "5"], ["default", "concurrency", "2"], ["other", "tokens", "7"]],
  });
  const requested = { max_completion_tokens: 10, messages: [{ role: "user", content: "one two three four five six" }] };
  const response = await gateway.ask("chat", prompt("chat", requested));
  const { usage } = await response.json();
  await gateway.gateway.ledger.flush();
  const { left, limitLeft } = await read();
  // A token costs 0.01 USD.
  assertEquals(left, [["default", `0.${30 - usage.completion_tokens}`], ["other", "1"]]);
  assertEquals(limitLeft?.[0], ["default", "requests", "4"]);
});

Deno.test("the 40 groups that used most of their budgets are shown, and none while the ledger is unreadable", async () => {
  const groups = Object.fromEntries(
    Array.from({ length: 50 }, (_, index) => [`g${index}`, { budget: { usd: "1", period: "total" } }]),
  );
  await using gateway = startGateway({ models: [ROW], groups });
  const key = await gateway.addKey({ group: "g49" });
  await (await gateway.ask("chat", prompt("chat", { max_completion_tokens: 10 }), { key })).text();
  await gateway.gateway.ledger.flush();
  const samples = (await metricsOf(gateway)).get("sluice_group_budget_left_usd")?.samples;
  assertEquals([samples?.length, samples?.[0]?.labels], [40, { group: "g49" }]);
  const ledger = { ...gateway.gateway.ledger, spending: () => Promise.reject(new Error("out of reach")) };
  const away = readExposition(await (await metrics({ ...gateway.gateway, ledger })).text());
  assertEquals(away.get("sluice_group_budget_left_usd")?.samples, []);
});
