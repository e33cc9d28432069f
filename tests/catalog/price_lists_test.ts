import { assert, assertEquals, assertThrows } from "@std/assert";
import { listDifferences, matchModels } from "../../lib/catalog/price_differences.ts";
import { type ListedModel, listSnapshot, readPriceList } from "../../lib/catalog/price_lists.ts";
import { importList } from "../../lib/catalog/import_list.ts";
import { type CatalogModel, loadSnapshot } from "../../lib/catalog/snapshot.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { type JsonObject, parseJson } from "../../lib/json/mod.ts";

/** In the form of LiteLLM's list, with invented models. */
const LITELLM = `{
  "sample_spec": { "litellm_provider": "one of the providers", "mode": "one of chat", "input_cost_per_token": 0.0 },
  "small": {
    "litellm_provider": "openai", "mode": "chat", "max_input_tokens": 272000, "max_output_tokens": 128000,
    "input_cost_per_token": 1.25e-06, "output_cost_per_token": 1e-05, "cache_read_input_token_cost": 1.2500000000000001e-07,
    "input_cost_per_token_above_200k_tokens": 2.5e-06, "output_cost_per_token_above_200k_tokens": 1.5e-05,
    "input_cost_per_token_priority": 2.5e-06, "output_cost_per_token_priority": 2e-05
  },
  "gemini/flash": {
    "litellm_provider": "gemini", "mode": "chat", "input_cost_per_token": 0.0000003, "output_cost_per_token": 0.0000025
  },
  "long": {
    "litellm_provider": "anthropic", "mode": "chat", "input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05,
    "cache_creation_input_token_cost": 3.75e-06, "cache_creation_input_token_cost_above_1hr": 6e-06
  },
  "embed": { "litellm_provider": "openai", "mode": "embedding", "input_cost_per_token": 1e-07, "output_cost_per_token": 0 },
  "vectors": {
    "litellm_provider": "openai", "mode": "embedding", "input_cost_per_token": 2e-08, "output_cost_per_token": 0,
    "max_input_tokens": 8191, "output_vector_size": 1536
  },
  "painter": { "litellm_provider": "openai", "mode": "image_generation", "output_cost_per_image": 0.04 },
  "elsewhere": { "litellm_provider": "bedrock", "mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": 1e-06 }
}`;

/** The same in the form of models.dev's list. */
const MODELS_DEV = `{
  "openai": { "id": "openai", "models": {
    "small": {
      "name": "Small", "release_date": "2026-01-02", "reasoning": true, "temperature": false,
      "reasoning_options": [{ "type": "budget_tokens", "min": 1 }, { "type": "effort", "values": ["low"] }],
      "modalities": { "input": ["text", "pdf"], "output": ["text"] },
      "limit": { "context": 400000, "output": 128000 },
      "cost": { "input": 1.25, "output": 10, "cache_read": 0.125,
        "tiers": [{ "tier": { "type": "context", "size": 200000 }, "input": 2.5, "output": 15 }] }
    },
    "free": { "limit": { "context": 1 } },
    "embedding": { "cost": { "input": 0.13, "output": 0.0 }, "modalities": { "output": ["text"] } },
    "speaker": { "cost": { "input": 1, "output": 2 }, "modalities": { "output": ["audio"] } }
  } },
  "google": { "id": "google", "models": {
    "flash": { "cost": { "input": 0.30, "output": 2.50, "context_over_200k": { "input": 0.6, "output": 5 } } }
  } },
  "unknown-host": { "id": "unknown-host", "models": { "small": { "cost": { "input": 1, "output": 1 } } } }
}`;

/** Without the members of rows. */
function listed(text: string): Omit<ListedModel, "row">[] {
  return readPriceList(parseJson(text)).map(({ row: _, ...model }) => model);
}

Deno.test("readPriceList() reads LiteLLM's list exactly, with tiers", () => {
  assertEquals(listed(LITELLM), [
    {
      vendor: "openai",
      model: "small",
      max_completion_tokens: 128_000,
      pricing: {
        prompt: "0.00000125",
        completion: "0.00001",
        input_cache_read: "0.000000125",
        context_tiers: [{ above: 200_000, prompt: "0.0000025", completion: "0.000015" }],
        service_tiers: { priority: { prompt: "0.0000025", completion: "0.00002" } },
      },
    },
    { vendor: "gemini", model: "flash", pricing: { prompt: "0.0000003", completion: "0.0000025" } },
    {
      vendor: "anthropic",
      model: "long",
      pricing: {
        prompt: "0.000003",
        completion: "0.000015",
        input_cache_write_5m: "0.00000375",
        input_cache_write_1h: "0.000006",
      },
    },
    { vendor: "openai", model: "vectors", pricing: { prompt: "0.00000002", completion: "0" } },
  ]);
});

Deno.test("readPriceList() reads the vector length of LiteLLM's embedding models", () => {
  const row = readPriceList(parseJson(LITELLM)).find(({ model }) => model === "vectors")?.row;
  assertEquals(row, {
    context_length: 8_191,
    architecture: { input_modalities: ["text"], output_modalities: ["embeddings"] },
    embedding: { dimensions: 1_536 },
  });
});

Deno.test("readPriceList() reads models.dev's list exactly, with both forms of tiers", () => {
  assertEquals(listed(MODELS_DEV), [
    {
      vendor: "openai",
      model: "small",
      context_length: 400_000,
      max_completion_tokens: 128_000,
      pricing: {
        prompt: "0.00000125",
        completion: "0.00001",
        input_cache_read: "0.000000125",
        context_tiers: [{ above: 200_000, prompt: "0.0000025", completion: "0.000015" }],
      },
    },
    {
      vendor: "gemini",
      model: "flash",
      pricing: {
        prompt: "0.0000003",
        completion: "0.0000025",
        context_tiers: [{ above: 200_000, prompt: "0.0000006", completion: "0.000005" }],
      },
    },
  ]);
});

Deno.test("importList() updates known models and adds selected new ones", () => {
  const known: CatalogModel = {
    vendor: "openai",
    model: "small",
    date: "2026-01-01",
    source: "ours",
    page: "https://prices.example",
    row: {
      id: "openai/small",
      name: "Known",
      created: 7,
      context_length: 9,
      top_provider: { is_moderated: true, max_completion_tokens: 3 },
      limits: { concurrency: 2 },
      pricing: {
        prompt: "0.000001",
        completion: "0.00001",
        hosted_tools: { web_search: "0.01" },
        context_tiers: [{ above: 5, prompt: "1", completion: "1" }],
      },
    },
  };
  const options = { date: "2026-11-01", source: "api.json" };
  const importOf = (text: string, only: string[]) =>
    importList(readPriceList(parseJson(text)), { date: "2026-01-01", models: [known] }, { ...options, only });
  const some = importOf(MODELS_DEV, []);
  const pricing = {
    prompt: "0.00000125",
    completion: "0.00001",
    input_cache_read: "0.000000125",
    context_tiers: [{ above: 200_000, prompt: "0.0000025", completion: "0.000015" }],
  };
  assertEquals(some.catalog, {
    date: "2026-11-01",
    models: [{
      ...known,
      ...options,
      row: {
        ...known.row,
        context_length: 400_000,
        top_provider: { is_moderated: true, max_completion_tokens: 128_000 },
        pricing: { ...pricing, hosted_tools: { web_search: "0.01" } },
      },
    }],
  });
  assertEquals(some.added, []);
  assertEquals(some.changes.map(({ id, member, configured, listed }) => [id, member, configured, listed]), [
    ["openai/small", "pricing.prompt", "0.000001", "0.00000125"],
    ["openai/small", "pricing.input_cache_read", null, "0.000000125"],
    ["openai/small", "pricing.context_tiers[above 5]", "1, 1", null],
    ["openai/small", "pricing.context_tiers[above 200000].prompt", null, "0.0000025"],
    ["openai/small", "pricing.context_tiers[above 200000].completion", null, "0.000015"],
  ]);

  // Without a context window, "flash" cannot be a row.
  assertEquals(importOf(MODELS_DEV, ["google/*"]).catalog.models, []);
  assertEquals(
    importList(readPriceList(parseJson(MODELS_DEV)), { date: "", models: [] }, { ...options, only: ["*"] }),
    {
      catalog: {
        date: "2026-11-01",
        models: [{
          vendor: "openai",
          model: "small",
          ...options,
          row: {
            id: "openai/small",
            name: "Small",
            created: Date.UTC(2026, 0, 2) / 1000,
            architecture: { input_modalities: ["text", "file"] },
            reasoning: { modes: ["manual", "adaptive"] },
            supported_parameters: ["max_tokens", "stop", "tools", "tool_choice", "response_format"],
            context_length: 400_000,
            top_provider: { max_completion_tokens: 128_000 },
            pricing,
          },
        }],
      },
      changes: [],
      added: ["openai/small"],
    },
  );
});

Deno.test("readPriceList() rejects other files", () => {
  for (const text of ["[]", "{}", '"x"', '{"a": 1}', '{"a": {"models": {}}}', '{"a": {"litellm_provider": "x"}}']) {
    assertThrows(() => readPriceList(parseJson(text)), RangeError, "Cannot read the price list", text);
  }
});

Deno.test("listDifferences() compares the target's prices, else the model's in force", () => {
  const pricing = {
    prompt: "0.00000125",
    completion: "0.0000100",
    input_cache_read: "0.000000125",
    hosted_tools: { web_search: "0.01" },
    context_tiers: [{ above: 200_000, prompt: "0.0000025", completion: "0.000015" }],
    service_tiers: { priority: { prompt: "0.0000025", completion: "0.00002" } },
  };
  const model = (id: string, row: JsonObject, target: JsonObject = {}): JsonObject => ({
    id,
    created: 1,
    context_length: 400_000,
    top_provider: { max_completion_tokens: 128_000 },
    pricing: row,
    targets: [{ upstream: "mine", model: "small", ...target }],
  });
  const { context_tiers: _, ...flat } = pricing;
  const { models, upstreams } = parseConfig({
    upstreams: {
      mine: { vendor: "openai", api_key: { env: "KEY" } },
      other: { vendor: "groq", api_key: { env: "KEY" } },
    },
    models: [
      model("acme/same", pricing),
      model("acme/dear", { ...pricing, prompt: "0.000002" }),
      model("acme/resold", { ...pricing, prompt: "0.000002" }, { pricing }),
      model("acme/flat", flat),
      model("acme/tiered", {
        ...pricing,
        context_tiers: [...pricing.context_tiers, { above: 9, prompt: "1", completion: "2" }],
      }),
      { ...model("acme/elsewhere", { ...pricing, prompt: "7" }), targets: [{ upstream: "other", model: "small" }] },
      {
        ...model("acme/lowered", { ...pricing, prompt: "0.000002" }),
        price_changes: [{ from: "2026-01-01T00:00:00Z", ...pricing }, { from: "2027-01-01T00:00:00Z", ...flat }],
      },
      {
        ...model("acme/raised", pricing),
        price_changes: [{ from: "2026-01-01T00:00:00Z", ...pricing, prompt: "0.000002" }],
      },
    ],
  }, () => "secret-0123456789abcdef");
  const found = matchModels({ models, upstreams }, readPriceList(parseJson(LITELLM)))
    .flatMap((match) => listDifferences(match, Date.UTC(2026, 5, 1)));
  assertEquals(found.map(({ id, member, configured, listed }) => [id, member, configured, listed]), [
    ["acme/dear", "pricing.prompt", "0.000002", "0.00000125"],
    ["acme/flat", "pricing.context_tiers[above 200000].prompt", null, "0.0000025"],
    ["acme/flat", "pricing.context_tiers[above 200000].completion", null, "0.000015"],
    ["acme/tiered", "pricing.context_tiers[above 9]", "1, 2", null],
    ["acme/raised", "price_changes[from 2026-01-01T00:00:00.000Z].prompt", "0.000002", "0.00000125"],
  ]);
});

Deno.test("the built-in catalog has no differences from itself", async () => {
  const snapshot = await loadSnapshot();
  const config = parseConfig({
    upstreams: Object.fromEntries(
      snapshot.models.map(({ vendor }) => [vendor, { vendor, api_key: { env: "KEY" } }]),
    ),
    models: snapshot.models.map(({ vendor, model, row }) => ({ ...row, targets: [{ upstream: vendor, model }] })),
  }, () => "secret-0123456789abcdef");
  const matched = matchModels(config, listSnapshot(snapshot));
  assertEquals(matched.length, snapshot.models.length);
  assert(matched.some(({ listed }) => listed.pricing.context_tiers !== undefined));
  assertEquals(matched.flatMap((match) => listDifferences(match, 0)), []);
});
