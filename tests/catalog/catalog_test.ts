import { assertEquals, assertObjectMatch } from "@std/assert";
import { createCatalog, isLanguageModel } from "../../lib/catalog/catalog.ts";
import { compatibleModel } from "../../lib/catalog/compatible_format.ts";
import { EMBEDDED_MODELS } from "../../lib/catalog/embedded.ts";
import { type Model, modelSchema } from "../../lib/catalog/model.ts";
import { nativeModel } from "../../lib/catalog/native_format.ts";
import { isObject, type Json } from "../../lib/json/mod.ts";

function model(id: string, change: Record<string, unknown> = {}): Model {
  return modelSchema.parse({
    id,
    created: 1_761_955_200,
    context_length: 1000,
    pricing: { prompt: "0.000001", completion: "0.000002", input_cache_read: "0" },
    targets: [{ upstream: "embedded", model: "echo" }],
    reasoning: { modes: ["adaptive"] },
    ...change,
  });
}

const FULL = model("acme/one", {
  canonical_slug: "acme/one-2025-11-01",
  name: "One",
  description: "The first",
  owned_by: "acme-labs",
  architecture: { input_modalities: ["text", "image", "file"], tokenizer: "o200k_base", instruct_type: "chatml" },
  top_provider: { max_completion_tokens: 500, is_moderated: true },
  expiration_date: "2027-01-31",
});

const SHARED = {
  owned_by: "acme-labs",
  canonical_slug: "acme/one-2025-11-01",
  description: "The first",
  context_length: 1000,
  architecture: {
    modality: "text+image+file->text",
    input_modalities: ["text", "image", "file"],
    output_modalities: ["text"],
    tokenizer: "o200k_base",
    instruct_type: "chatml",
  },
  pricing: {
    prompt: "0.000001",
    completion: "0.000002",
    input_cache_read: "0",
    input_cache_write_5m: "0.000001",
    input_cache_write_1h: "0.000001",
  },
  top_provider: { context_length: 1000, max_completion_tokens: 500, is_moderated: true },
  supported_parameters: [
    "temperature",
    "top_p",
    "max_tokens",
    "stop",
    "tools",
    "tool_choice",
    "response_format",
    "reasoning",
  ],
  expiration_date: "2027-01-31",
};

Deno.test("compatibleModel() has exactly the members of the compatible format", () => {
  assertEquals(compatibleModel(FULL, 0), {
    ...SHARED,
    id: "acme/one",
    object: "model",
    created: 1_761_955_200,
    name: "One",
    per_request_limits: null,
    default_parameters: null,
  });
});

/** Features of models that Anthropic does not serve. */
const ELSEWHERE = { isAnthropics: false, hostedTools: ["web_search"] };

Deno.test("nativeModel() has exactly the members of the native format", () => {
  const { capabilities, ...others } = nativeModel(FULL, 0, ELSEWHERE);
  assertEquals(others, {
    ...SHARED,
    type: "model",
    id: "acme/one",
    display_name: "One",
    created_at: "2025-11-01T00:00:00Z",
    line: null,
    lifecycle: "deprecated",
    deprecated_at: null,
    retires_at: "2027-01-31T00:00:00Z",
    max_input_tokens: SHARED.context_length,
    max_tokens: SHARED.top_provider.max_completion_tokens,
  });
  assertEquals(supported(capabilities), [
    ...["effort", "effort.high", "effort.low", "effort.medium", "image_input", "pdf_input", "structured_outputs"],
    ...["thinking", "thinking.types.adaptive", "thinking.types.disabled"],
  ]);
  const anthropics = nativeModel(FULL, 0, { isAnthropics: true, hostedTools: ["web_search"] }).capabilities;
  const added = ["citations", "context_management", "server_tools", "server_tools.web_search"];
  assertEquals(supported(anthropics), [...supported(capabilities), ...added].sort());
});

/** Returns the paths of the supported features, in order. */
function supported(value: Json | undefined, path: string[] = []): string[] {
  if (!isObject(value)) return [];
  const own = value.supported === true ? [path.join(".")] : [];
  return [...own, ...Object.entries(value).flatMap(([name, inner]) => supported(inner, [...path, name]))].sort();
}

Deno.test("both formats show the current prices", () => {
  const changed = model("acme/one", {
    price_changes: [
      { from: "2027-03-01T00:00:00Z", prompt: "0.000003", completion: "0.000004" },
      { from: "2027-01-01T00:00:00+01:00", prompt: "0.000005", completion: "0.000006", input_cache_read: "0.000001" },
    ],
  });
  const cases: [at: string, prompt: string, read: string][] = [
    ["2026-12-31T22:59:59.999Z", "0.000001", "0"],
    ["2026-12-31T23:00:00Z", "0.000005", "0.000001"],
    ["2027-02-28T23:59:59Z", "0.000005", "0.000001"],
    ["2027-03-01T00:00:00Z", "0.000003", "0.000003"],
  ];
  for (const [at, prompt, input_cache_read] of cases) {
    for (const show of [compatibleModel, (row: Model, now: number) => nativeModel(row, now, ELSEWHERE)]) {
      assertObjectMatch(show(changed, Date.parse(at)), { pricing: { prompt, input_cache_read } }, at);
      assertEquals(Object.keys(show(changed, Date.parse(at)).pricing ?? {}), Object.keys(SHARED.pricing));
    }
  }
});

Deno.test("both formats begin with the identifying members", () => {
  assertEquals(Object.keys(compatibleModel(FULL, 0)).slice(0, 3), ["id", "object", "created"]);
  assertEquals(Object.keys(nativeModel(FULL, 0, ELSEWHERE)).slice(0, 4), ["type", "id", "display_name", "created_at"]);
});

Deno.test("nativeModel() formats every possible time of a row", () => {
  const cases: [number, string][] = [[0, "1970-01-01T00:00:00Z"], [253_402_300_799, "9999-12-31T23:59:59Z"]];
  for (const [created, text] of cases) {
    assertEquals(nativeModel(model("a/b", { created }), 0, ELSEWHERE).created_at, text);
  }
});

Deno.test("the catalog finds models by exact id and by vendor", () => {
  const models = [model("acme/one"), model("zeta/z"), model("acme/two")];
  const catalog = createCatalog({ models, embedded_models: true, upstreams: {} });
  assertEquals(catalog.models.map(({ id }) => id), [
    "acme/one",
    "zeta/z",
    "acme/two",
    "sluice/echo",
    "sluice/canvas",
    "sluice/embed",
    "sluice/rerank",
  ]);
  assertEquals(catalog.vendors.get("acme")?.map(({ id }) => id), ["acme/one", "acme/two"]);
  assertEquals(catalog.find("acme/two")?.id, "acme/two");
  for (const id of ["acme/TWO", "acme", "", "constructor", "__proto__"]) assertEquals(catalog.find(id), undefined, id);
  assertEquals(catalog.vendors.get("constructor"), undefined);
});

Deno.test("createCatalog() can omit the embedded models", () => {
  assertEquals(createCatalog({ models: [], embedded_models: false, upstreams: {} }).models, []);
});

Deno.test("the embedded model is free and supports every reasoning mode", () => {
  const echo = EMBEDDED_MODELS.find(({ id }) => id === "sluice/echo");
  assertEquals(new Set(Object.values(echo?.pricing ?? { prompt: "missing" })), new Set(["0"]));
  assertEquals(echo?.reasoning, {
    modes: ["manual", "adaptive"],
    efforts: ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
  });
  assertEquals([echo?.context_length, echo?.top_provider.max_completion_tokens], [131_072, 32_768]);
});

Deno.test("isLanguageModel() requires text output", () => {
  const cases: [string[], boolean][] = [[["text"], true], [["image"], false], [["image", "text"], true]];
  for (const [output_modalities, is] of cases) {
    assertEquals(isLanguageModel(model("a/b", { architecture: { output_modalities } })), is);
  }
});
