import { assertEquals, assertThrows } from "@std/assert";
import { ConfigError } from "../../lib/config.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import type { Json, JsonObject } from "../../lib/json.ts";

function model(id: string, change: JsonObject = {}): JsonObject {
  return {
    id,
    created: 1,
    context_length: 1000,
    pricing: { prompt: "0.000000000003", completion: "0.00000125" },
    targets: [{ upstream: "embedded", model: "echo" }],
    ...change,
  };
}

function problems(file: Json): string[] {
  try {
    parseConfig(file);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

Deno.test("a factor must leave every price that its group may pay within 12 decimals", () => {
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

Deno.test("factors are checked against the embedded models, unless there are none", () => {
  const groups = { g: { price_factor: "0.000001" } };
  assertEquals(problems({ groups }), [
    'groups.g.price_factor: "0.000001" times pricing.prompt "0.00000075" of model "sluice/canvas" has more than 12 ' +
    "decimals, and 1 more of its prices have",
  ]);
  assertEquals(problems({ groups, embedded_models: false }), []);
});

Deno.test("two changes of prices at one moment are refused, however they are written", () => {
  const change = (from: string) => ({ from, prompt: "1", completion: "1" });
  const changes = ["2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z", "2027-01-01T01:00:00+01:00"].map(change);
  assertEquals(problems({ models: [model("acme/one", { price_changes: changes })] }), [
    "models[0].price_changes[2].from: The same moment is already that of price_changes[0]",
  ]);
});

Deno.test("prices and factors of the wrong form are told once, by the schema", () => {
  const file = {
    models: [model("acme/one", { pricing: { prompt: "1e-13", completion: 5 }, price_changes: [{ from: "soon" }, 3] })],
    groups: { g: { price_factor: "a half" }, h: 3, i: { price_factor: "0.5", models: "*" } },
  };
  for (const line of problems(file)) assertEquals(/Expected|Missing|Invalid/.test(line), true, line);
  assertThrows(() => parseConfig(file), ConfigError);
});
