import { assertEquals, assertMatch } from "@std/assert";
import OpenAI from "openai-7";
import { ResponsesToolRunner } from "openai-7/helpers/responses-tool-runner";
import { sharedGateway } from "./gateway.ts";
import { asInput, caught, ECHO, openai, testOpenai } from "./sdks.ts";

const gateway = sharedGateway();

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

/** A number that binary floats cannot hold must come through as written. */
const TWO_CALLS = 'Both.\ncall:get_weather {"city": "Zürich", "days": 9007199254740993}\ncall:clock {}';

/** Calls as the model spelled them, without their ids. */
function spelled({ output }: OpenAI.Responses.Response): unknown[] {
  return output.flatMap((item) => {
    if (item.type === "function_call") return [[item.name, item.arguments]];
    return item.type === "custom_tool_call" ? [[item.name, item.input]] : [];
  });
}

testOpenai("responses calls tools in parallel and takes their results", gateway, async ({ client }) => {
  const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: TWO_CALLS }];
  const first = await client.responses.create({ model: ECHO, input, tools: TOOLS });
  assertEquals([first.status, first.output_text], ["completed", "Both."]);
  assertEquals(first.output.map(({ type }) => type), ["message", "function_call", "function_call"]);
  assertEquals(spelled(first), [
    ["get_weather", '{"city": "Zürich", "days": 9007199254740993}'],
    ["clock", "{}"],
  ]);
  input.push(...asInput(first));
  for (const item of first.output) {
    if (item.type !== "function_call") continue;
    assertMatch(item.id ?? "", /^fc_/);
    assertMatch(item.call_id, /^call_[0-9a-f]+$/);
    input.push({ type: "function_call_output", call_id: item.call_id, output: `${item.name} done` });
  }
  const second = await client.responses.create({ model: ECHO, input, tools: TOOLS });
  assertEquals([second.output_text, spelled(second)], ["get_weather done\nclock done", []]);
});

testOpenai("responses streams the calls that create answers", gateway, async ({ client }) => {
  const request = { model: ECHO, input: `${TWO_CALLS}\ncall:sql select 1`, tools: [...TOOLS, SQL] };
  const whole = await client.responses.create(request);
  assertEquals(spelled(whole).at(-1), ["sql", "select 1"]);
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
  assertEquals([...pieces.values()], ['{"city": "Zürich", "days": 9007199254740993}', "{}", "select 1"]);
});

testOpenai("responses obeys every tool choice", gateway, async ({ client }) => {
  const weather = ["get_weather", '{"city":""}'];
  const cases: [string, Partial<OpenAI.Responses.ResponseCreateParamsNonStreaming>, unknown[]][] = [
    ["Hi", {}, []],
    ["What is the weather?", {}, [weather]],
    ["What is the weather?", { tool_choice: "none" }, []],
    ["Hi", { tool_choice: "required" }, [weather]],
    ["Hi", { tool_choice: { type: "function", name: "clock" } }, [["clock", "{}"]]],
    [TWO_CALLS, { parallel_tool_calls: false }, [["get_weather", '{"city": "Zürich", "days": 9007199254740993}']]],
    ["Hi", {
      tool_choice: { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "clock" }] },
    }, [["clock", "{}"]]],
  ];
  for (const [input, extra, calls] of cases) {
    const answer = await client.responses.create({ model: ECHO, input, tools: TOOLS, ...extra });
    assertEquals(spelled(answer), calls, `${input} ${JSON.stringify(extra)}`);
  }
});

testOpenai("responses refuses a choice of a tool that is not there", gateway, async ({ client, Sdk }) => {
  const call = client.responses.create({
    model: ECHO,
    input: "Hi",
    tools: TOOLS,
    tool_choice: { type: "function", name: "nobody" },
  });
  assertEquals((await caught(Sdk.BadRequestError, call)).param, "tool_choice");
});

testOpenai("responses calls custom tools, and takes their results", gateway, async ({ client }) => {
  const input: OpenAI.Responses.ResponseInput = [{ role: "user", content: 'call:sql select "a" from t' }];
  const first = await client.responses.create({ model: ECHO, input, tools: [SQL] });
  assertEquals(spelled(first), [["sql", 'select "a" from t']]);
  const [call] = first.output;
  if (call?.type !== "custom_tool_call") throw new Error(`Expected a custom tool call, got ${call?.type}`);
  assertMatch(call.id ?? "", /^ctc_/);
  input.push(...asInput(first), {
    type: "custom_tool_call_output",
    call_id: call.call_id,
    output: [{ type: "input_text", text: "1 row" }],
  });
  assertEquals((await client.responses.create({ model: ECHO, input, tools: [SQL] })).output_text, "1 row");
});

Deno.test("openai 7: the tool runner of responses runs a function and ends with its result", async () => {
  const client = openai(OpenAI, gateway(), gateway().key);
  for (const stream of [false, true]) {
    const asked: unknown[] = [];
    const runner = new ResponsesToolRunner({
      functions: [{
        tool: WEATHER,
        execute: (input) => {
          asked.push(input);
          return "Snow";
        },
      }],
    });
    const input = 'call:get_weather {"city":"Oslo"}';
    const final = await runner.run(client, { model: ECHO, input, store: false }, { stream });
    assertEquals([final.output_text, asked], ["Snow", [{ city: "Oslo" }]]);
  }
});
