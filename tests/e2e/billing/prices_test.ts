/** Tiers, time windows and prices of targets, in the real program: bills, reports and the audit agree to the last unit. */
import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { openStore } from "../../../lib/store/open.ts";
import { freshDatabase, postgresTest } from "../../support/databases.ts";
import { inFolder, reuseGateways, reuseProcess, run, startReused, startWithKey } from "../../support/program.ts";
import { issueKey } from "../../../lib/access/keys.ts";
import { startUpstream } from "../../upstream/mod.ts";
import { WHOLE } from "../../upstream/replies.ts";
import { parseStoreAddress } from "../../../lib/config/address.ts";
import { postChat } from "../../support/post_chat.ts";
import { plainModel, plainUpstream } from "../../support/plain_model.ts";

reuseProcess();
reuseGateways();

const TOKENS = { prompt: "0.000001", completion: "0.00001" };
const PRICING = {
  ...TOKENS,
  context_tiers: [{ above: 1000, prompt: "0.000002", completion: "0.00002" }],
  service_tiers: { priority: { prompt: "0.000003", completion: "0.00003" } },
  time_windows: [{ name: "all-day", from: "00:00", until: "24:00", ...TOKENS }],
};
/** The vendor's prices: lower, and with a threshold of their own. */
const BOUGHT = {
  prompt: "0.0000005",
  completion: "0.000005",
  context_tiers: [{ above: 1001, prompt: "0.0000015", completion: "0.000015" }],
  service_tiers: { priority: { prompt: "0.0000025", completion: "0.000025" } },
};

/** Input tokens and tier of an answer, with its price for the customer and at the upstream. 10 tokens of output each. */
const CASES: readonly { input: number; tier?: string; customer: string; upstream: string; shows: string }[] = [
  { input: 1000, customer: "0.0011", upstream: "0.00055", shows: "up to 1,000 tokens of input" },
  { input: 1001, customer: "0.002202", upstream: "0.0005505", shows: "above 1,000 tokens of input" },
  { input: 1002, customer: "0.002204", upstream: "0.001653", shows: "above 1,000 tokens of input" },
  { input: 1002, tier: "priority", customer: "0.003306", upstream: "0.002755", shows: "Service tier: priority" },
];

function configOf(url: string, store: string): JsonObject {
  const { time_windows: _, ...tiered } = PRICING;
  const model = (id: string, target: JsonObject, pricing: JsonObject = tiered) =>
    plainModel({ id, context_length: 100_000, pricing, targets: [{ upstream: "vendor", ...target }] });
  return {
    store,
    upstreams: { vendor: { vendor: "openai-compatible", base_url: url } },
    models: [
      model("acme/bought", { model: "bought", pricing: BOUGHT }),
      model("acme/plain", { model: "plain" }),
      model("acme/windowed", { model: "windowed" }, { ...TOKENS, time_windows: PRICING.time_windows }),
    ],
    groups: { default: { key_budget: { usd: "10", period: "total" } } },
  };
}

async function checkBills(folder: string, store: string): Promise<void> {
  const answers = CASES.map(({ input, tier }) => ({
    ...WHOLE.chat,
    ...(tier !== undefined && { service_tier: tier }),
    usage: { prompt_tokens: input, completion_tokens: 10, total_tokens: input + 10 },
  }));
  let next = 0;
  await using server = startUpstream(() => ({ body: JSON.stringify(answers[next++ % answers.length]) }));
  await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(configOf(`${server.url}/v1`, store)));
  const opened = await openStore(parseStoreAddress(store.replace("sqlite:", `sqlite:${folder}/`)));
  const { key, record } = issueKey({ name: "tester", group: "default", now: Date.now() });
  await opened.keys.add(record);
  await opened.close();
  const gateway = await startReused([], { folder });
  const ask = async (model: string) => {
    const response = await postChat(gateway.origin, key, {
      model,
      messages: [{ role: "user", content: "x".repeat(2000) }],
      max_tokens: 20,
    });
    assertEquals(response.status, 200);
    await response.text();
    return { id: response.headers.get("x-request-id") ?? "", cost: response.headers.get("x-sluice-cost") ?? "" };
  };
  for (const { customer, upstream, shows } of CASES) {
    const { id, cost } = await ask("acme/bought");
    assertEquals(cost, customer);
    const explained = await run(["explain", id], { folder });
    assertStringIncludes(explained.out, `Charged: ${customer} USD`);
    assertStringIncludes(explained.out, `Cost at the upstream: ${upstream} USD`);
    assertStringIncludes(explained.out.replaceAll(/ +/g, " "), shows);
  }
  assertEquals((await ask("acme/plain")).cost, "0.0011");
  next = 0;
  const windowed = await ask("acme/windowed");
  assertEquals(windowed.cost, "0.0011");
  assertStringIncludes((await run(["explain", windowed.id], { folder })).out, "Time window:  all-day");
  gateway.kill("SIGTERM");
  await gateway.ended;
  const usage = JSON.parse(
    (await run(["usage", "--by", "upstream", "--json", "--since", "2026-01-01"], { folder })).out,
  );
  const lines = (usage.lines as JsonObject[]).map(({ model, unpriced, upstream_usd, cost_usd, margin_usd }) => [
    ...[model, unpriced, upstream_usd, cost_usd, margin_usd],
  ]);
  assertEquals(lines, [
    ["bought", 0, "0.0055085", "0.008812", "0.0033035"],
    ["plain", 1, "0.0011", "0.0011", "0"],
    ["windowed", 1, "0.0011", "0.0011", "0"],
  ]);
  const audit = await run(["audit"], { folder });
  assert(audit.code === 0, audit.out);
}

Deno.test("tiers and prices of targets make exact bills, explanations and margins, in SQLite", () =>
  inFolder((folder) => checkBills(folder, "sqlite:data/sluice.db")));

postgresTest(
  "tiers and prices of targets make exact bills, explanations and margins, in Postgres",
  () =>
    inFolder(async (folder) => {
      await using database = await freshDatabase();
      await checkBills(folder, database.url);
    }),
);

Deno.test("a model configured only by name is served, billed and audited at catalog prices", () =>
  inFolder(async (folder) => {
    const usage = { prompt_tokens: 272_001, completion_tokens: 10, total_tokens: 272_011 };
    const models: string[] = [];
    await using server = startUpstream(({ body }) => {
      models.push(JSON.parse(body).model);
      return { body: JSON.stringify({ ...WHOLE.chat, usage }) };
    });
    const upstream = { ...plainUpstream(server.url), vendor: "openai", api_key: { env: "VENDOR_KEY" } };
    await Deno.writeTextFile(
      `${folder}/sluice.jsonc`,
      JSON.stringify({ upstreams: { mine: upstream }, models: ["openai/gpt-5.4*"], store: "sqlite:data/sluice.db" }),
    );
    const env = { VENDOR_KEY: "vendor-key-0123456789" };
    const gateway = await startWithKey([], { folder, env }, startReused);
    const headers = { authorization: `Bearer ${gateway.key}`, "content-type": "application/json" };
    const listed = await (await fetch(`${gateway.origin}/v1/models`, { headers })).json();
    const ids = (listed.data as { id: string }[]).map(({ id }) => id).filter((id) => id.startsWith("openai/"));
    assertEquals(ids, ["openai/gpt-5.4", "openai/gpt-5.4-mini", "openai/gpt-5.4-nano"]);
    const response = await fetch(`${gateway.origin}/v1/chat/completions`, {
      method: "POST",
      headers,
      body: JSON.stringify({ model: "openai/gpt-5.4", messages: [{ role: "user", content: "Hi" }] }),
    });
    assertEquals([response.status, models], [200, ["gpt-5.4"]]);
    await response.text();
    // Above 272,000 tokens: 272,001 x 5 and 10 x 22.5 USD per million.
    assertEquals(response.headers.get("x-sluice-cost"), "1.36023");
    gateway.kill("SIGTERM");
    await gateway.ended;
    assertEquals((await run(["audit"], { folder, env })).code, 0);
  }));
