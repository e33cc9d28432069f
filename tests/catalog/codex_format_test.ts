import { assertEquals, assertMatch } from "@std/assert";
import type { Json, JsonObject } from "../../lib/json/mod.ts";
import { model, startGateway, type TestGateway } from "../support/gateway.ts";
import { plainModel } from "../support/plain_model.ts";

/** Members that Codex 0.169.0 requires: it rejects the list if a row lacks one. */
const REQUIRED = `
  slug display_name supported_reasoning_levels shell_type visibility supported_in_api priority base_instructions
  support_verbosity truncation_policy supports_parallel_tool_calls experimental_supported_tools`.trim().split(/\s+/);

const ECHO = [{ upstream: "embedded", model: "echo" }];

function startCatalog(groups?: Record<string, Json>) {
  return startGateway({
    embedded_models: false,
    models: [
      plainModel({ id: "acme/plain", description: "Writes", context_length: 32_000, targets: ECHO }),
      model("openai/gpt-5.5", ECHO),
      model("openai/gpt-4.1", ECHO),
      model("acme/thinker", ECHO, {
        name: "Thinker",
        reasoning: { modes: ["adaptive"], efforts: ["none", "low", "medium", "max"] },
        architecture: { input_modalities: ["text", "image", "file"] },
      }),
      model("acme/deep", ECHO, { reasoning: { modes: ["manual"], efforts: ["none", "high"] } }),
      model("acme/mute", ECHO, { supported_parameters: ["temperature", "verbosity"] }),
      model("acme/paint", [{ upstream: "embedded", model: "canvas" }], {
        architecture: { output_modalities: ["image"] },
      }),
    ],
    ...(groups !== undefined && { groups }),
  });
}

function get({ url, key }: TestGateway, path: string): Promise<Response> {
  return fetch(url + path, { headers: { authorization: `Bearer ${key.key}` } });
}

async function rowsOf(gateway: TestGateway, version: string): Promise<Map<string, JsonObject>> {
  const response = await get(gateway, `/v1/models?client_version=${version}`);
  const body = await response.json();
  assertEquals([response.status, Object.keys(body)], [200, ["models"]]);
  return new Map(body.models.map((row: JsonObject) => [row.slug, row]));
}

function effortsOf(row: JsonObject | undefined): unknown[] {
  const levels = row?.supported_reasoning_levels as { effort: string; description: string }[];
  return levels.map(({ effort }) => effort);
}

Deno.test("codexList() has the language models that Codex does not know, in catalog order", async () => {
  await using gateway = startCatalog();
  const rows = await rowsOf(gateway, "0.169.0");
  assertEquals([...rows.keys()], ["acme/plain", "openai/gpt-4.1", "acme/thinker", "acme/deep", "acme/mute"]);
  assertEquals([...rows.values()].map((row) => row.priority), [0, 1, 2, 3, 4]);
  for (const row of rows.values()) {
    assertEquals(REQUIRED.filter((name) => row[name] === undefined || row[name] === null), []);
    assertMatch(String(row.base_instructions), /^You are Codex/);
  }
});

Deno.test("codexList() has the facts of the catalog", async () => {
  await using gateway = startCatalog();
  const rows = await rowsOf(gateway, "0.169.0");
  const facts = (id: string) => {
    const row = rows.get(id);
    return {
      name: row?.display_name,
      about: row?.description,
      context: row?.context_window,
      efforts: effortsOf(row),
      usual: row?.default_reasoning_level,
      summaries: [row?.supports_reasoning_summaries, row?.supports_reasoning_summary_parameter],
      tools: [row?.shell_type, row?.visibility, row?.supports_parallel_tool_calls],
      verbosity: row?.support_verbosity,
      input: row?.input_modalities,
    };
  };
  const plain = {
    name: "acme/plain",
    about: "Writes",
    context: 32_000,
    efforts: [],
    usual: undefined,
    summaries: [false, false],
    tools: ["shell_command", "list", true],
    verbosity: false,
    input: ["text"],
  };
  assertEquals(facts("acme/plain"), plain);
  const { context } = facts("acme/thinker");
  assertEquals(facts("acme/thinker"), {
    ...plain,
    name: "Thinker",
    about: null,
    context,
    efforts: ["none", "low", "medium", "max"],
    usual: "medium",
    summaries: [true, true],
    input: ["text", "image"],
  });
  assertEquals([facts("acme/deep").usual, facts("acme/deep").efforts], ["high", ["none", "high"]]);
  assertEquals([facts("acme/mute").tools, facts("acme/mute").verbosity], [["disabled", "hide", false], true]);
});

Deno.test("codexList() omits the effort that Codex before 0.144 cannot parse", async () => {
  await using gateway = startCatalog();
  const shown = async (version: string) => effortsOf((await rowsOf(gateway, version)).get("acme/thinker"));
  assertEquals(await shown("0.130.0"), ["none", "low", "medium"]);
  assertEquals(await shown("0.144.0"), ["none", "low", "medium", "max"]);
  assertEquals(await shown("1.0.0"), ["none", "low", "medium", "max"]);
  assertEquals(await shown("what"), ["none", "low", "medium"]);
});

Deno.test("Codex gets no model if its key may not use responses, and other clients the usual list", async () => {
  await using gateway = startCatalog({ default: { endpoints: ["models", "chat"] } });
  assertEquals((await rowsOf(gateway, "0.169.0")).size, 0);
  const usual = await (await get(gateway, "/v1/models?limit=1")).json();
  assertEquals([Object.keys(usual), usual.data.length], [["object", "data"], 6]);
  const native = await (await get(gateway, "/anthropic/v1/models?client_version=0.169.0")).json();
  assertEquals(native.data, []);
});

Deno.test("an invalid page of the native list is a 400 in Anthropic's shape", async () => {
  await using gateway = startCatalog();
  const response = await get(gateway, "/anthropic/v1/models?limit=0");
  const { type, error } = await response.json();
  assertEquals([response.status, type, error], [400, "error", {
    type: "invalid_request_error",
    message: "limit: Expected a whole number from 1 to 1000",
  }]);
});
