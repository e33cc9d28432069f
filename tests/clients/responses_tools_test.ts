import { assertEquals, assertMatch } from "@std/assert";
import type OpenAI from "openai-7";
import { asInput, crossOpenai } from "./sdks.ts";
import { customCall, sharedCrossing, twoCalls, weatherArguments } from "./upstreams.ts";

const gateway = sharedCrossing();

const WEATHER: OpenAI.Responses.FunctionTool = {
  type: "function",
  name: "get_weather",
  description: "Weather of a city",
  parameters: {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer" } },
    required: ["city"],
  },
  strict: false,
};
const CLOCK: OpenAI.Responses.FunctionTool = { type: "function", name: "clock", parameters: null, strict: null };
const SQL: OpenAI.Responses.CustomTool = { type: "custom", name: "sql", format: { type: "text" } };
const TOOLS = [WEATHER, CLOCK];
const SELECT = { client: "responses", name: "sql", input: 'select "a" from t' } as const;

/** Calls as the model spelled them, without their ids. */
function spelled({ output }: OpenAI.Responses.Response): unknown[] {
  return output.flatMap((item) => {
    if (item.type === "function_call") return [[item.name, item.arguments]];
    return item.type === "custom_tool_call" ? [[item.name, item.input]] : [];
  });
}

crossOpenai(
  "responses calls tools in parallel and takes their results",
  gateway,
  async ({ client, model, upstream }) => {
    const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: twoCalls({ upstream }) }];
    const first = await client.responses.create({ model, input, tools: TOOLS });
    assertEquals([first.status, first.output_text], ["completed", "Both."]);
    assertEquals(first.output.map(({ type }) => type), ["message", "function_call", "function_call"]);
    assertEquals(spelled(first), [
      ["get_weather", weatherArguments({ upstream })],
      ["clock", "{}"],
    ]);
    input.push(...asInput(first));
    for (const item of first.output) {
      if (item.type !== "function_call") continue;
      assertMatch(item.id ?? "", /^fc_/);
      assertMatch(item.call_id, /^call_[0-9a-f_]+$/);
      input.push({ type: "function_call_output", call_id: item.call_id, output: `${item.name} done` });
    }
    const second = await client.responses.create({ model, input, tools: TOOLS });
    assertEquals([second.output_text, spelled(second)], ["get_weather done\nclock done", []]);
  },
);

crossOpenai("responses streams the calls that create answers", gateway, async ({ client, model, upstream }) => {
  const request = {
    model,
    input: `${twoCalls({ upstream })}\n${customCall({ upstream }, SELECT)}`,
    tools: [...TOOLS, SQL],
  };
  const whole = await client.responses.create(request);
  assertEquals(spelled(whole).at(-1), ["sql", SELECT.input]);
  const final = await client.responses.stream(request).finalResponse();
  assertEquals(spelled(final), spelled(whole));
  assertEquals(final.usage, whole.usage);
  const events = await Array.fromAsync(await client.responses.create({ ...request, stream: true }));
  const pieces = new Map<string, string>();
  for (const event of events) {
    if (
      event.type === "response.function_call_arguments.delta" || event.type === "response.custom_tool_call_input.delta"
    ) pieces.set(event.item_id, (pieces.get(event.item_id) ?? "") + event.delta);
  }
  assertEquals([...pieces.values()], [weatherArguments({ upstream }), "{}", SELECT.input]);
});

crossOpenai("responses calls custom tools, and takes their results", gateway, async ({ client, model, upstream }) => {
  const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: customCall({ upstream }, SELECT) }];
  const first = await client.responses.create({ model, input, tools: [SQL] });
  assertEquals(spelled(first), [["sql", 'select "a" from t']]);
  const [call] = first.output;
  if (call?.type !== "custom_tool_call") throw new Error(`Expected a custom tool call, got ${call?.type}`);
  assertMatch(call.id ?? "", /^ctc_/);
  input.push(...asInput(first), {
    type: "custom_tool_call_output",
    call_id: call.call_id,
    output: [{ type: "input_text", text: "1 row" }],
  });
  assertEquals((await client.responses.create({ model, input, tools: [SQL] })).output_text, "1 row");
});
