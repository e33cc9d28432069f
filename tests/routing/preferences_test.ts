import { assertEquals, assertThrows } from "@std/assert";
import { GatewayError } from "../../lib/errors.ts";
import { type Json, type JsonObject, parseJson } from "../../lib/json/mod.ts";
import { isPayable, NO_PREFERENCES, parsePreferences } from "../../lib/routing/preferences.ts";

const KNOWN = new Set(["main", "anthropic", "openai"]);

Deno.test("parsePreferences() reads every supported member and ignores the rest", () => {
  const provider: JsonObject = {
    order: ["main", "openai"],
    only: ["main"],
    ignore: ["somebody-else"],
    allow_fallbacks: false,
    require_parameters: true,
    sort: { by: "latency", partition: "none" },
    max_price: { prompt: "1", completion: 2.5, request: "0", image: 3, audio: "0.1" },
    preferred_min_throughput: { p50: 40, p90: 20, p75: null },
    preferred_max_latency: 3,
    data_collection: "deny",
    zdr: true,
    enforce_distillable_text: true,
    quantizations: ["fp8"],
    something_new: {},
  };
  assertEquals(parsePreferences(provider, KNOWN), {
    order: ["main", "openai"],
    only: new Set(["main"]),
    ignore: new Set(["somebody-else"]),
    allowFallbacks: false,
    sort: { by: "latency", acrossModels: true },
    maxPrice: { prompt: 1_000_000n, completion: 2_500_000n },
    minThroughput: [{ share: 0.5, value: 40 }, { share: 0.9, value: 20 }],
    maxLatency: [{ share: 0.5, value: 3 }],
  });
});

Deno.test("parsePreferences() treats null and absent as no preference", () => {
  const names = `
    order only ignore allow_fallbacks require_parameters sort max_price preferred_min_throughput
    preferred_max_latency`.trim().split(/\s+/);
  assertEquals(parsePreferences({}, KNOWN), NO_PREFERENCES);
  assertEquals(parsePreferences(Object.fromEntries(names.map((name) => [name, null])), KNOWN), NO_PREFERENCES);
  assertEquals(parsePreferences({ order: [], only: [], sort: {} }, KNOWN), NO_PREFERENCES);
  assertEquals(parsePreferences({ sort: "exacto" }, KNOWN), NO_PREFERENCES);
  assertEquals(parsePreferences({ sort: "price" }, KNOWN).sort, { by: "price", acrossModels: false });
  assertEquals(parsePreferences({ sort: { by: "price", partition: "model" } }, KNOWN).sort?.acrossModels, false);
});

Deno.test("parsePreferences() rejects and names invalid members", () => {
  const cases: [JsonObject, param: string][] = [
    [{ order: "main" }, "provider.order"],
    [{ order: ["main", 5] }, "provider.order[1]"],
    [{ order: ["main", "nobody"] }, "provider.order[1]"],
    [{ only: ["nobody"] }, "provider.only[0]"],
    [{ only: ["__proto__"] }, "provider.only[0]"],
    [{ ignore: {} }, "provider.ignore"],
    [{ allow_fallbacks: "no" }, "provider.allow_fallbacks"],
    [{ sort: "speed" }, "provider.sort"],
    [{ sort: ["price"] }, "provider.sort"],
    [{ sort: { by: "speed" } }, "provider.sort.by"],
    [{ sort: { by: "price", partition: "all" } }, "provider.sort.partition"],
    [{ max_price: "1" }, "provider.max_price"],
    [{ max_price: { prompt: "one" } }, "provider.max_price.prompt"],
    [{ max_price: { completion: -1 } }, "provider.max_price.completion"],
    [{ max_price: { image: "1 USD" } }, "provider.max_price.image"],
    [{ max_price: { prompt: "1e999" } }, "provider.max_price.prompt"],
    [{ max_price: { prompt: "9".repeat(41) } }, "provider.max_price.prompt"],
    [{ preferred_min_throughput: "fast" }, "provider.preferred_min_throughput"],
    [{ preferred_max_latency: { p90: "1" } }, "provider.preferred_max_latency.p90"],
    [{ preferred_max_latency: -1 }, "provider.preferred_max_latency"],
  ];
  for (const [provider, param] of cases) {
    const error = assertThrows(() => parsePreferences(provider, KNOWN), GatewayError);
    assertEquals([error.kind, error.param], ["invalid", param], JSON.stringify(provider));
  }
});

Deno.test("prices per million tokens are read exactly, as text and as numbers", () => {
  const cases: [text: string, amount: bigint][] = [
    ["0", 0n],
    ["1", 1_000_000n],
    ["0.000001", 1n],
    // Fractions of 1e-12 make no difference to "at most".
    ["0.0000019", 1n],
    ["0.0000001", 0n],
    ["1e-7", 0n],
    ["2.5e-6", 2n],
    ["1.25e2", 125_000_000n],
    ["0.1", 100_000n],
    ["0.30000000000000004", 300_000n],
    ["12345678901234567890", 12345678901234567890_000000n],
    ["9e40", 10n ** 40n],
  ];
  for (const [text, amount] of cases) {
    const read = (value: Json) => parsePreferences({ max_price: { prompt: value } }, KNOWN).maxPrice.prompt;
    assertEquals(read(text), amount, text);
    const number = parseJson(text);
    if (typeof number === "number") assertEquals(read(number), amount, text);
  }
});

Deno.test("isPayable() allows a price equal to the limit", () => {
  const preferences = parsePreferences({ max_price: { prompt: "0.3", completion: 1 } }, KNOWN);
  assertEquals(isPayable(preferences, { prompt: 300_000n, completion: 1_000_000n }), true);
  assertEquals(isPayable(preferences, { prompt: 300_001n, completion: 1_000_000n }), false);
  assertEquals(isPayable(preferences, { prompt: 0n, completion: 1_000_001n }), false);
  assertEquals(isPayable(NO_PREFERENCES, { prompt: 10n ** 18n, completion: 10n ** 18n }), true);
});
