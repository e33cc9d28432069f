import { assertEquals } from "@std/assert";
import type { ContentBlock, Reasoning } from "../../../lib/protocols/canonical/types.ts";
import type { Model } from "../../../lib/catalog/model.ts";
import { type JsonObject, writeJson } from "../../../lib/json/mod.ts";
import { text, write } from "./prompts.ts";

const ADAPTIVE: Partial<Model> = { reasoning: { modes: ["adaptive"], efforts: ["low", "medium", "high"] } };
const MANUAL: Partial<Model> = { reasoning: { modes: ["manual"], efforts: ["low", "medium", "high"] } };
const BOTH: Partial<Model> = { reasoning: { modes: ["manual", "adaptive"], efforts: ["minimal", "low", "high"] } };

Deno.test("writePrompt() writes the arguments of a call as an object", () => {
  const cases: [string, string, boolean?][] = [
    ['{"id": 12345678901234567890, "x": 1.0}', '{"id":12345678901234567890,"x":1.0}'],
    ["", "{}"],
    [" \n", "{}"],
    ["{}", "{}"],
    ["[1]", '{"_raw":"[1]"}'],
    ['{"x"', '{"_raw":"{\\"x\\""}'],
    ["select 1", '{"input":"select 1"}', true],
  ];
  for (const [argumentsText, expected, custom] of cases) {
    const call: ContentBlock = {
      type: "tool_call",
      id: "c1",
      name: "f",
      arguments: argumentsText,
      ...(custom && { custom }),
    };
    const { body } = write({
      messages: [{ role: "user", blocks: [text("Hi")] }, { role: "assistant", blocks: [call] }],
    });
    assertEquals(
      writeJson(body.contents ?? null),
      `[{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"functionCall":{"id":"c1","name":"f","args":${expected}}}]}]`,
    );
  }
});

Deno.test("writePrompt() writes a result with its tool's name, and its text as an object", () => {
  const picture: ContentBlock = {
    type: "media",
    media: { kind: "bytes", mediaType: "image/png", base64: "aGk=" },
    name: "a.png",
  };
  const cases: [ContentBlock[], boolean | undefined, JsonObject][] = [
    [[text("4 degrees")], undefined, { response: { result: "4 degrees" } }],
    [[text("4"), text("degrees")], false, { response: { result: "4\ndegrees" } }],
    [[text(' {"degrees": 4}')], undefined, { response: { degrees: 4 } }],
    [[text("[4]")], undefined, { response: { result: "[4]" } }],
    [[text("{4")], undefined, { response: { result: "{4" } }],
    [[text('{"degrees": 4}')], true, { response: { error: '{"degrees": 4}' } }],
    [[], undefined, { response: { result: "" } }],
    [[text("Look"), picture], undefined, {
      response: { result: "Look" },
      parts: [{ inlineData: { mimeType: "image/png", data: "aGk=", displayName: "a.png" } }],
    }],
  ];
  for (const [blocks, isError, expected] of cases) {
    const { body } = write({
      messages: [
        { role: "user", blocks: [text("Hi")] },
        { role: "assistant", blocks: [{ type: "tool_call", id: "c1", name: "weather", arguments: "{}" }] },
        {
          role: "user",
          blocks: [
            { type: "tool_result", callId: "c1", blocks, ...(isError !== undefined && { isError }) },
            text("Here"),
          ],
        },
        { role: "system", blocks: [text("Hurry.")] },
      ],
    });
    const turns = Array.isArray(body.contents) ? body.contents : [];
    assertEquals(turns.at(-1), {
      role: "user",
      parts: [
        { functionResponse: { id: "c1", name: "weather", ...expected } },
        { text: "Here" },
        { text: "<system>\nHurry.\n</system>" },
      ],
    });
  }
});

Deno.test("writePrompt() puts signatures of the target's issuer on their parts, wherever they are", () => {
  const sign = (id: string | undefined, value: string, issuer = "google"): ContentBlock => ({
    type: "reasoning",
    text: "",
    hidden: true,
    signature: { issuer, value, ...(id !== undefined && { id }) },
  });
  const call = (id: string): ContentBlock => ({ type: "tool_call", id, name: "f", arguments: "{}" });
  const wrote = (id: string, thoughtSignature?: string): JsonObject => ({
    functionCall: { id, name: "f", args: {} },
    ...(thoughtSignature !== undefined && { thoughtSignature }),
  });
  const cases: [string, ContentBlock[], JsonObject[]][] = [
    ["before the call", [sign("call:a", "A"), call("a"), call("b")], [wrote("a", "A"), wrote("b")]],
    ["all first, as in chat", [sign("call:b", "B"), sign("call:a", "A"), text("x"), call("a"), call("b")], [
      { text: "x" },
      wrote("a", "A"),
      wrote("b", "B"),
    ]],
    ["after the call", [call("a"), sign("call:a", "A")], [wrote("a", "A")]],
    ["of no call", [sign("call:z", "Z"), call("a")], [wrote("a")]],
    ["of the next text", [text("x"), sign("text", "T"), text("y")], [{ text: "x" }, {
      text: "y",
      thoughtSignature: "T",
    }]],
    ["of the text before", [text("x"), sign("text:end", "T"), text("y")], [
      { text: "x", thoughtSignature: "T" },
      { text: "y" },
    ]],
    ["of a text that was moved", [sign("text:end", "T"), text("x")], [{ text: "x", thoughtSignature: "T" }]],
    ["of a text that is gone", [sign("text", "T"), call("a")], [wrote("a")]],
    ["two of one text", [sign("text", "T"), text("x"), sign("text:end", "U")], [{ text: "x", thoughtSignature: "T" }]],
    ["hidden thoughts", [sign(undefined, "H"), text("x")], [
      { text: "", thought: true, thoughtSignature: "H" },
      { text: "x" },
    ]],
    ["thoughts", [{ type: "reasoning", text: "Hm.", signature: { issuer: "google", value: "S" } }, text("x")], [
      { text: "Hm.", thought: true, thoughtSignature: "S" },
      { text: "x" },
    ]],
    ["unsigned thoughts", [{ type: "reasoning", text: "Hm." }, text("x")], [{ text: "x" }]],
    ["another's", [sign("call:a", "A", "anthropic"), sign(undefined, "S", "openai"), call("a")], [wrote("a")]],
  ];
  for (const [name, blocks, parts] of cases) {
    const { body } = write({ messages: [{ role: "user", blocks: [text("Hi")] }, { role: "assistant", blocks }] });
    assertEquals(body.contents, [{ role: "user", parts: [{ text: "Hi" }] }, { role: "model", parts }], name);
  }
});

Deno.test("writePrompt() gives a first unsigned call a placeholder for models that check signatures", () => {
  const call = (id: string): ContentBlock => ({ type: "tool_call", id, name: "f", arguments: "{}" });
  const signature: ContentBlock = {
    type: "reasoning",
    text: "",
    hidden: true,
    signature: { issuer: "google", value: "A", id: "call:a" },
  };
  const pass = "skip_thought_signature_validator";
  const cases: [ContentBlock[], Partial<Model>, (string | undefined)[]][] = [
    [[call("a"), call("b")], ADAPTIVE, [pass, undefined]],
    [[signature, call("a"), call("b")], ADAPTIVE, ["A", undefined]],
    [[call("a"), call("b")], MANUAL, [undefined, undefined]],
    [[call("a")], {}, [undefined]],
  ];
  for (const [blocks, row, expected] of cases) {
    const { body } = write({ messages: [{ role: "user", blocks: [text("Hi")] }, { role: "assistant", blocks }] }, row);
    const parts = JSON.parse(writeJson(body.contents ?? null))[1].parts;
    assertEquals(parts.map((part: JsonObject) => part.thoughtSignature), expected);
  }
});

Deno.test("writePrompt() writes tools as declarations with complete schemas", () => {
  const schema = {
    type: "object",
    properties: { a: { $ref: "#/$defs/A" } },
    $defs: { A: {} },
    additionalProperties: false,
  };
  const { body, dropped } = write({
    tools: [
      { type: "function", name: "f", description: "Does it", parameters: schema, strict: true },
      { type: "function", name: "g", description: "", parameters: { properties: {} }, strict: false },
      { type: "function", name: "h" },
    ],
    parallelToolCalls: false,
  });
  assertEquals(body.tools, [{
    functionDeclarations: [
      { name: "f", description: "Does it", parametersJsonSchema: schema },
      { name: "g", parametersJsonSchema: { type: "object", properties: {} } },
      { name: "h" },
    ],
  }]);
  assertEquals(dropped, ["parallel_tool_calls", "strict"]);
});

Deno.test("writePrompt() writes the reasoning depth as a budget or a level, as the model requires", () => {
  const shown = { includeThoughts: true };
  const cases: [string, Reasoning | undefined, Partial<Model>, JsonObject | undefined, string[]?][] = [
    ["nothing asked", undefined, ADAPTIVE, undefined],
    ["no reasoning", { effort: "high" }, {}, undefined],
    ["effort, by level", { effort: "medium" }, ADAPTIVE, { thinkingLevel: "MEDIUM", ...shown }],
    ["deepest, by level", { effort: "max" }, ADAPTIVE, { thinkingLevel: "HIGH", ...shown }, ["reasoning_effort"]],
    ["effort, by budget", { effort: "medium" }, MANUAL, { thinkingBudget: 8_192, ...shown }],
    ["effort, where both are taken", { effort: "low" }, BOTH, { thinkingLevel: "LOW", ...shown }],
    ["budget", { mode: "manual", budgetTokens: 2_000 }, MANUAL, { thinkingBudget: 2_000, ...shown }],
    ["budget, where both are taken", { mode: "manual", budgetTokens: 2_000 }, BOTH, {
      thinkingBudget: 2_000,
      ...shown,
    }],
    [
      "budget beside effort",
      { mode: "manual", budgetTokens: 2_000, effort: "low" },
      BOTH,
      { thinkingBudget: 2_000, ...shown },
      ["reasoning_effort"],
    ],
    ["budget, where none is taken", { mode: "manual", budgetTokens: 2_000 }, ADAPTIVE, shown, ["reasoning.max_tokens"]],
    ["its own depth, by level", { mode: "adaptive" }, ADAPTIVE, shown],
    ["its own depth, by budget", { mode: "adaptive" }, MANUAL, { thinkingBudget: -1, ...shown }],
    ["off, by budget", { mode: "off" }, MANUAL, { thinkingBudget: 0 }],
    ["off, where both are taken", { mode: "off", effort: "none" }, BOTH, { thinkingBudget: 0 }],
    ["off, by level", { mode: "off" }, ADAPTIVE, { thinkingLevel: "LOW" }, ["reasoning"]],
    ["no effort, by level", { mode: "off", effort: "none" }, ADAPTIVE, { thinkingLevel: "LOW" }, ["reasoning_effort"]],
    [
      "off, where it must think",
      { mode: "off" },
      { reasoning: { modes: ["manual"], efforts: ["low", "high"], mandatory: true } },
      { thinkingBudget: 1_024 },
      ["reasoning"],
    ],
    ["not shown", { effort: "low", display: "omitted" }, ADAPTIVE, { thinkingLevel: "LOW" }],
    ["only shown", { display: "summarized" }, MANUAL, shown],
    ["only not shown", { display: "omitted" }, MANUAL, undefined],
  ];
  for (const [name, reasoning, row, config, names = []] of cases) {
    const { body, dropped } = write(reasoning === undefined ? {} : { reasoning }, row);
    assertEquals(body.generationConfig, config && { thinkingConfig: config }, name);
    assertEquals(dropped, names, name);
  }
});

Deno.test("writePrompt() leaves room for an answer beside the thoughts, which count as output", () => {
  const MANDATORY: Partial<Model> = { reasoning: { modes: ["manual"], efforts: ["low", "high"], mandatory: true } };
  const cases: [maxTokens: number, reasoning: Reasoning, row: Partial<Model>, budget: number, names?: string[]][] = [
    [100_000, { effort: "high" }, MANUAL, 24_576],
    [10_000, { effort: "high" }, MANUAL, 6_000],
    [10_000, { effort: "low" }, MANUAL, 1_000],
    [1_000, { effort: "high" }, MANUAL, 600],
    [1_000, { effort: "low" }, MANUAL, 0, ["reasoning_effort"]],
    [1_000, { effort: "low" }, MANDATORY, 128],
    [4_000, { mode: "manual", budgetTokens: 4_000 }, MANUAL, 3_999, ["reasoning.max_tokens"]],
    [4_000, { mode: "manual", budgetTokens: 3_999 }, MANUAL, 3_999],
    [300, { mode: "manual", budgetTokens: 200 }, MANUAL, 200],
    [300, { mode: "manual", budgetTokens: 400 }, MANUAL, 0, ["reasoning.max_tokens"]],
  ];
  for (const [maxTokens, reasoning, row, budget, names = []] of cases) {
    const { body, dropped } = write({ reasoning, maxTokens }, row);
    const written = body.generationConfig as JsonObject;
    assertEquals((written.thinkingConfig as JsonObject).thinkingBudget, budget, JSON.stringify([maxTokens, reasoning]));
    assertEquals(dropped, names);
  }
});

Deno.test("writePrompt() drops and names a forced choice without functions", () => {
  assertEquals(write({ toolChoice: { type: "required" } }).dropped, ["tool_choice"]);
  assertEquals(write({ toolChoice: { type: "auto" } }).dropped, []);
});
