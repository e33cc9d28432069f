import { assert, assertEquals, assertRejects } from "@std/assert";
import { loadSnapshot } from "../../lib/catalog/snapshot.ts";
import { ConfigError } from "../../lib/config.ts";
import { type LoadedConfig, readConfig } from "../../lib/config/load.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import type { JsonObject } from "../../lib/json/mod.ts";

const env = (name: string) => name === "KEY" ? "secret-0123456789abcdef" : undefined;
const read = (file: JsonObject): Promise<LoadedConfig> =>
  readConfig({ text: JSON.stringify(file) }, { flags: {}, env, readTextFile: (path) => Deno.readTextFile(path) });
const upstream = (vendor: string) => ({ vendor, api_key: { env: "KEY" } });

async function problems(file: JsonObject): Promise<readonly string[]> {
  return (await assertRejects(() => read(file), ConfigError)).problems
    .map((line) => line.replace(/^sluice\.jsonc:1:\d+: /, ""));
}

Deno.test("the built-in catalog has valid, dated rows of known vendors, without duplicate ids", async () => {
  const { date, models } = await loadSnapshot();
  assert(models.length >= 40);
  const upstreams = Object.fromEntries(models.map(({ vendor }) => [vendor, upstream(vendor)]));
  // Each row passes the configuration's own checks.
  const config = parseConfig({
    upstreams,
    models: models.map(({ vendor, model, row }) => ({ ...row, targets: [{ upstream: vendor, model }] })),
  }, env);
  assertEquals(config.models.length, models.length);
  for (const { date: own, source, page, row } of models) {
    assert(/^\d{4}-\d{2}-\d{2}$/.test(own) && own <= date, row.id);
    assert(source !== "" && page?.startsWith("https://"), row.id);
  }
  assertEquals(date, models.map((model) => model.date).sort().at(-1));
  for (const { id, pricing, top_provider, context_length, architecture } of config.models) {
    assert(pricing.prompt !== "0" && pricing.completion !== "0", id);
    assert(top_provider.max_completion_tokens <= context_length, id);
    assert(architecture.output_modalities.includes("text"), id);
  }
});

Deno.test("globs and ids become complete models at the only upstream of their vendor", async () => {
  const { models } = await loadSnapshot();
  const { config, modelIndices } = await read({
    upstreams: { mine: upstream("openai"), claude: upstream("anthropic") },
    models: ["openai/gpt-5*", "anthropic/claude-opus-4-8", { id: "openai/o3" }],
  });
  const expected = models.map(({ row }) => row.id).filter((id) => id.startsWith("openai/gpt-5"));
  assertEquals(config.models.map(({ id }) => id), [...expected, "anthropic/claude-opus-4-8", "openai/o3"]);
  assertEquals(modelIndices, [...expected.map(() => 0), 1, 2]);
  const [gpt5] = config.models;
  assertEquals(gpt5?.targets.map(({ upstream, model }) => [upstream, model]), [["mine", "gpt-5"]]);
  assertEquals(gpt5?.pricing.prompt, "0.00000125");
});

Deno.test("configured members override the catalog; prices and targets as a whole", async () => {
  const own = {
    id: "openai/gpt-4.1",
    name: "Ours",
    pricing: { prompt: "0.000003", completion: "0.00001" },
    top_provider: { is_moderated: true },
    limits: { concurrency: 3 },
    targets: [{ upstream: "two", model: "deployment" }],
  };
  const { config } = await read({
    upstreams: { one: upstream("openai"), two: upstream("openai") },
    models: ["openai/gpt-4.1", own],
  });
  assertEquals(config.models.length, 1);
  const [model] = config.models;
  assertEquals([model?.name, model?.context_length, model?.limits?.concurrency], ["Ours", 1_047_576, 3]);
  assertEquals(model?.top_provider, {
    context_length: 1_047_576,
    max_completion_tokens: 32_768,
    is_moderated: true,
  });
  assertEquals(model?.pricing.input_cache_read, "0.000003");
  assertEquals(model?.pricing.service_tiers, undefined);
  assertEquals(model?.targets.map(({ upstream, model }) => [upstream, model]), [["two", "deployment"]]);
});

Deno.test("a model with all members is not changed by the catalog", async () => {
  const whole = {
    id: "openai/gpt-5",
    created: 1,
    context_length: 5,
    pricing: { prompt: "1", completion: "1" },
    targets: [{ upstream: "one", model: "gpt-5" }],
  };
  const file = { upstreams: { one: upstream("openai") }, models: [whole], catalog_date: "2020-01-01" };
  const { config, modelIndices } = await read(file);
  assertEquals(modelIndices, undefined);
  assertEquals(config.models, parseConfig(file, env).models);
});

Deno.test("a model that cannot be completed is a problem at its position in the file", async () => {
  const one = { one: upstream("openai") };
  const two = { a: upstream("openai"), b: upstream("openai") };
  const cases: [file: JsonObject, problem: string][] = [
    [
      { upstreams: one, models: ["openai/gpt-99*"] },
      'models[0]: "openai/gpt-99*" matches no model in the catalog (see "sluice models list")',
    ],
    [
      { upstreams: one, models: ["openai/o3", { id: "openai/gpt-99" }] },
      'models[1].id: "openai/gpt-99" is not in the catalog (see "sluice models list"): configure it in full',
    ],
    [
      { upstreams: {}, models: ["openai/*"] },
      'models[0]: "openai/gpt-3.5-turbo" needs an upstream of vendor "openai": add one to upstreams, or set targets',
    ],
    [
      { upstreams: two, models: ["openai/*"] },
      'models[0]: Several upstreams are of vendor "openai" ("a", "b"): write { "id": "openai/gpt-3.5-turbo", "targets": […] ' +
      "} and name one",
    ],
    [
      { upstreams: two, models: [{ id: "openai/o3", targets: [{ upstream: "c", model: "o3" }] }] },
      'models[0].targets[0].upstream: Unknown upstream "c"; known: a, b, embedded',
    ],
    // After 29 models of a glob.
    [
      { upstreams: one, models: ["openai/*", { id: "openai/o3", colour: "red" }] },
      "models[1].colour: Unknown member; expected one of: id, canonical_slug",
    ],
    [
      { upstreams: one, catalog_date: "2020-01-01", models: ["openai/*"] },
      `catalog_date: The catalog is dated ${(await loadSnapshot()).date}, not 2020-01-01`,
    ],
  ];
  for (const [file, expected] of cases) {
    const [first = ""] = await problems(file);
    assert(first.startsWith(expected), `${first}\nis not\n${expected}`);
  }
});

Deno.test("a matching catalog date is accepted", async () => {
  const { date } = await loadSnapshot();
  const { config } = await read({ upstreams: { one: upstream("openai") }, catalog_date: date, models: ["openai/o3"] });
  assertEquals(config.models.map(({ id }) => id), ["openai/o3"]);
});
