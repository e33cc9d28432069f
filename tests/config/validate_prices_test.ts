import { assertEquals, assertThrows } from "@std/assert";
import { ConfigError } from "../../lib/config.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import type { Json, JsonObject } from "../../lib/json/mod.ts";
import { plainModel } from "../support/plain_model.ts";

function model(id: string, change: JsonObject = {}): JsonObject {
  return plainModel({ id, pricing: { prompt: "0.000000000003", completion: "0.00000125" }, ...change });
}

function problems(file: Json, env: Readonly<Record<string, string>> = {}): string[] {
  try {
    parseConfig(file, (name) => env[name]);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

Deno.test("a price factor must keep every price of its group within 12 decimals", () => {
  const models = [
    model("acme/one"),
    model("acme/two", { pricing: { prompt: "1", completion: "2", input_cache_write_1h: "0.000000000015" } }),
    model("acme/three", {
      pricing: { prompt: "1", completion: "2" },
      price_changes: [{ from: "2027-01-01T00:00:00Z", prompt: "1", completion: "0.0000000001" }],
    }),
  ];
  const cases: [group: JsonObject, problem: string[]][] = [
    [{}, []],
    [{ price_factor: "2" }, []],
    [{ price_factor: "1.000000" }, []],
    [{ price_factor: "0" }, []],
    [{ price_factor: "0.000000" }, []],
    [{ price_factor: "0.5", models: ["other/*"] }, []],
    [{ price_factor: "0.8", models: ["acme/two"] }, []],
    [{ price_factor: "0.01", models: ["acme/three"] }, []],
    [{ price_factor: "0.8", models: ["acme/one"] }, [
      'groups.g.price_factor: "0.8" times pricing.prompt "0.000000000003" of model "acme/one" has more than 12 decimals',
    ]],
    [{ price_factor: "0.7", models: ["acme/t*"] }, [
      'groups.g.price_factor: "0.7" times pricing.input_cache_write_1h "0.000000000015" of model "acme/two" has more ' +
      "than 12 decimals",
    ]],
    [{ price_factor: "0.001" }, [
      'groups.g.price_factor: "0.001" times pricing.prompt "0.000000000003" of model "acme/one" has more than 12 ' +
      "decimals, and 2 more of its prices have",
    ]],
    [{ price_factor: "0.001", models: ["acme/three"] }, [
      'groups.g.price_factor: "0.001" times price_changes[0].completion "0.0000000001" of model "acme/three" has more ' +
      "than 12 decimals",
    ]],
  ];
  for (const [g, expected] of cases) assertEquals(problems({ models, groups: { g } }), expected, JSON.stringify(g));
});

Deno.test("price factors are checked against the embedded models, unless these are disabled", () => {
  const groups = { g: { price_factor: "0.000001" } };
  assertEquals(problems({ groups }), [
    'groups.g.price_factor: "0.000001" times pricing.prompt "0.00000075" of model "sluice/canvas" has more than 12 ' +
    "decimals, and 1 more of its prices have",
  ]);
  assertEquals(problems({ groups, embedded_models: false }), []);
});

Deno.test("two price changes at one moment are rejected, in any notation", () => {
  const change = (from: string) => ({ from, prompt: "1", completion: "1" });
  const changes = ["2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z", "2027-01-01T01:00:00+01:00"].map(change);
  assertEquals(problems({ models: [model("acme/one", { price_changes: changes })] }), [
    "models[0].price_changes[2].from: The same time is already used by price_changes[0]",
  ]);
});

Deno.test("malformed prices and factors are reported once, by the schema", () => {
  const file = {
    models: [model("acme/one", { pricing: { prompt: "1e-13", completion: 5 }, price_changes: [{ from: "soon" }, 3] })],
    groups: { g: { price_factor: "a half" }, h: 3, i: { price_factor: "0.5", models: "*" } },
  };
  for (const line of problems(file)) assertEquals(/Expected|Missing|Invalid/.test(line), true, line);
  assertThrows(() => parseConfig(file), ConfigError);
});

Deno.test("an allowed extra needs a price at every model of the group", () => {
  const upstreams = {
    one: { vendor: "openai-compatible", base_url: "http://127.0.0.1:1/v1" },
    two: { vendor: "gemini", api_key: { env: "KEY" } },
  };
  const at = (upstream: string) => ({ targets: [{ upstream, model: "m" }] });
  const prices = { prompt: "0", completion: "0" };
  const priced = { ...prices, hosted_tools: { web_search: "0" }, service_tiers: { priority: prices } };
  const models = [
    model("acme/inside"),
    model("acme/gemini", at("two")),
    model("acme/bare", { ...at("one"), pricing: prices }),
    model("acme/priced", { ...at("one"), pricing: priced }),
    model("acme/later", {
      ...at("one"),
      pricing: priced,
      price_changes: [{ from: "2027-01-01T00:00:00Z", ...prices, hosted_tools: { web_search: "0.01" } }],
    }),
  ];
  const cases: [group: JsonObject, problem: string[]][] = [
    [{}, []],
    [{ hosted_tools: ["web_search"], service_tiers: ["priority"], models: ["acme/inside", "acme/gemini"] }, []],
    [{ hosted_tools: ["web_search"], service_tiers: ["priority"], models: ["acme/priced"] }, []],
    [{ hosted_tools: ["web_search"], models: ["acme/later"] }, []],
    [{ remote_mcp: true, vendor_state: true }, []],
    [{ hosted_tools: ["web_search"] }, [
      'groups.g.hosted_tools[0]: The hosted tool "web_search" has no price in pricing.hosted_tools of model ' +
      '"acme/bare": set it ("0" is a price), or remove it here',
    ]],
    [{ service_tiers: ["priority"], models: ["acme/later"] }, [
      'groups.g.service_tiers[0]: The service tier "priority" has no price in price_changes[0].service_tiers of model ' +
      '"acme/later": set it ("0" is a price), or remove it here',
    ]],
    [{ hosted_tools: ["web_search", "toString"], models: ["acme/b*"] }, [
      'groups.g.hosted_tools[1]: Expected a name such as "web_search", "priority" or "inference_geo:us", not "toString"',
      'groups.g.hosted_tools[0]: The hosted tool "web_search" has no price in pricing.hosted_tools of model ' +
      '"acme/bare": set it ("0" is a price), or remove it here',
      'groups.g.hosted_tools[1]: The hosted tool "toString" has no price in pricing.hosted_tools of model ' +
      '"acme/bare": set it ("0" is a price), or remove it here',
    ]],
    [{ service_tiers: ["ultrafast"] }, [
      'groups.g.service_tiers[0]: The service tier "ultrafast" has no price in pricing.service_tiers of model ' +
      '"acme/bare", nor in 3 more places: set it ("0" is a price), or remove it here',
    ]],
  ];
  for (const [group, expected] of cases) {
    assertEquals(problems({ upstreams, models, groups: { g: group } }, { KEY: "upstream-key-0123456789" }), expected);
  }
});

Deno.test("a price factor must keep prices of tools and tiers within 12 decimals", () => {
  const models = [model("acme/one", {
    pricing: {
      prompt: "0",
      completion: "0",
      hosted_tools: { web_search: "0.000000000001" },
      service_tiers: { priority: { prompt: "0.000000000003", completion: "0" } },
    },
  })];
  assertEquals(problems({ models, groups: { g: { price_factor: "0.5" } } }), [
    'groups.g.price_factor: "0.5" times pricing.hosted_tools.web_search "0.000000000001" of model "acme/one" has more ' +
    "than 12 decimals, and 1 more of its prices have",
  ]);
});

Deno.test("thresholds and time windows must define one price per request", () => {
  const prices = { prompt: "1", completion: "1" };
  const window = (name: string, from: string, until: string) => ({ name, from, until, ...prices });
  const tier = (above: number) => ({ above, ...prices });
  const cases: [pricing: JsonObject, problem: string[]][] = [
    [{
      context_tiers: [tier(2), tier(1)],
      time_windows: [window("a", "16:30", "00:30"), window("b", "00:30", "16:30")],
    }, []],
    [{ time_windows: [window("all-day", "00:00", "24:00")] }, []],
    [{ context_tiers: [tier(1), tier(2), tier(1)] }, [
      "models[0].pricing.context_tiers[2].above: 1 is already used by context_tiers[0]",
    ]],
    [{ service_tiers: { priority: { ...prices, context_tiers: [tier(7), tier(7)] } } }, [
      "models[0].pricing.service_tiers.priority.context_tiers[1].above: 7 is already used by context_tiers[0]",
    ]],
    [{ context_tiers: [tier(0)] }, ["models[0].pricing.context_tiers[0].above: Expected at least 1, not 0"]],
    [{ time_windows: [window("a", "22:00", "02:00"), window("b", "01:59", "03:00")] }, [
      "models[0].pricing.time_windows[1]: It overlaps with time_windows[0]",
    ]],
    [{ time_windows: [window("all-day", "00:00", "24:00"), window("b", "01:00", "02:00")] }, [
      "models[0].pricing.time_windows[1]: It overlaps with time_windows[0]",
    ]],
    [{ time_windows: [window("a", "12:00", "12:00"), window("b", "24:00", "00:00")] }, [
      "models[0].pricing.time_windows[0].until: The window is empty",
      "models[0].pricing.time_windows[1].until: The window is empty",
    ]],
    [{ time_windows: [window("a", "12:00", "13:00"), window("a", "14:00", "15:00")] }, [
      'models[0].pricing.time_windows[1].name: "a" is already time_windows[0]',
    ]],
    [{ time_windows: [window("a", "25:00", "13:00")] }, [
      'models[0].pricing.time_windows[0].from: Expected a time of day by UTC, such as "16:30", not "25:00"',
    ]],
  ];
  for (const [pricing, expected] of cases) {
    assertEquals(problems({ models: [model("acme/one", { pricing: { ...prices, ...pricing } })] }), expected);
  }
  const image = {
    architecture: { output_modalities: ["image"] },
    targets: [{ upstream: "embedded", model: "canvas" }],
  };
  const night = { ...window("night", "00:00", "06:00"), context_tiers: [tier(1)] };
  const painted = { ...image, pricing: { ...prices, context_tiers: [tier(1)], time_windows: [night] } };
  assertEquals(problems({ models: [model("acme/one", painted)] }), [
    "models[0].pricing.context_tiers: Only for models that answer in text",
    "models[0].pricing.time_windows[0].context_tiers: Only for models that answer in text",
  ]);
});

Deno.test("a price factor must keep prices of context tiers and time windows within 12 decimals", () => {
  const prices = { prompt: "1", completion: "1" };
  const small = { prompt: "1", completion: "0.000000000003" };
  const cases: [JsonObject, string][] = [
    [{ context_tiers: [{ above: 5, ...small }] }, "context_tiers[0]"],
    [{ time_windows: [{ name: "a", from: "01:00", until: "02:00", ...small }] }, "time_windows[0]"],
  ];
  for (const [pricing, place] of cases) {
    const models = [model("acme/one", { pricing: { ...prices, ...pricing } })];
    assertEquals(problems({ models, groups: { g: { price_factor: "0.5" } } }), [
      `groups.g.price_factor: "0.5" times pricing.${place}.completion "0.000000000003" of model "acme/one" has more than ` +
      "12 decimals",
    ]);
  }
});

Deno.test("prices are refused if a request may cost more than the ledger can store", () => {
  const priced = (id: string, prompt: string, change: JsonObject = {}) =>
    model(id, { context_length: 1_000_000, pricing: { prompt, completion: "0" }, ...change });
  const models = [
    priced("acme/fits", "9.2"),
    priced("acme/too-much", "999999"),
    priced("acme/later", "0", { price_changes: [{ from: "2027-01-01T00:00:00Z", prompt: "9.3", completion: "0" }] }),
    priced("acme/tier", "0", {
      pricing: { prompt: "0", completion: "0", service_tiers: { priority: { prompt: "10", completion: "0" } } },
    }),
  ];
  const problem = (index: number, group: string, cost: string) =>
    `models[${index}].pricing: A request of group "${group}" may cost ${cost} USD, more than the ledger can store: ` +
    "write USD per token";
  assertEquals(problems({ models }), [
    problem(1, "default", "999999000000"),
    problem(2, "default", "9300000"),
    problem(3, "default", "10000000"),
  ]);
  const groups = { default: { models: ["acme/fits"] }, dear: { models: ["acme/fits"], price_factor: "2" } };
  assertEquals(problems({ models, groups }), [problem(0, "dear", "18400000")]);
});
