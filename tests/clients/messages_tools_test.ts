import { assertEquals, assertMatch } from "@std/assert";
import type Anthropic from "anthropic-1";
import { betaTool } from "anthropic-1/helpers/beta/json-schema";
import { sharedGateway } from "./gateway.ts";
import { caught, ECHO, testAnthropic } from "./sdks.ts";

const gateway = sharedGateway();

const WEATHER: Anthropic.Tool = {
  name: "get_weather",
  description: "Weather of a city",
  input_schema: {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer" } },
    required: ["city"],
  },
  cache_control: { type: "ephemeral" },
};
const CLOCK: Anthropic.Tool = { name: "clock", input_schema: { type: "object" } };
const TOOLS = [WEATHER, CLOCK];

const TWO_CALLS = 'Both.\ncall:get_weather {"city": "Zürich", "days": 3}\ncall:clock {}';

/** Calls as the model spelled them, without their ids. */
function spelled({ content }: Anthropic.Message): unknown[] {
  return content.flatMap((block) => block.type === "tool_use" ? [[block.name, block.input]] : []);
}

testAnthropic("messages calls tools in parallel and takes their results", gateway, async ({ client }) => {
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: TWO_CALLS }];
  const request = { model: ECHO, max_tokens: 200, messages, tools: TOOLS };
  const first = await client.messages.create(request);
  assertEquals(first.stop_reason, "tool_use");
  assertEquals(first.content.map(({ type }) => type), ["text", "tool_use", "tool_use"]);
  assertEquals(spelled(first), [["get_weather", { city: "Zürich", days: 3 }], ["clock", {}]]);
  const results = first.content.flatMap((block): Anthropic.ToolResultBlockParam[] => {
    if (block.type !== "tool_use") return [];
    assertMatch(block.id, /^[A-Za-z0-9_-]+$/);
    return [{
      type: "tool_result",
      tool_use_id: block.id,
      content: `${block.name} done`,
      is_error: block.name === "clock",
    }];
  });
  messages.push({ role: "assistant", content: first.content }, { role: "user", content: results });
  const second = await client.messages.create(request);
  assertEquals([second.stop_reason, spelled(second)], ["end_turn", []]);
  assertEquals(second.content.map((block) => block.type === "text" && block.text), [
    "get_weather done\n[error] clock done",
  ]);
});

testAnthropic("messages streams the calls that create answers", gateway, async ({ client }) => {
  const request = {
    model: ECHO,
    max_tokens: 200,
    messages: [{ role: "user" as const, content: TWO_CALLS }],
    tools: TOOLS,
  };
  const whole = await client.messages.create(request);
  const stream = client.messages.stream(request);
  const pieces: string[] = [];
  stream.on("inputJson", (piece) => pieces.push(piece));
  const final = await stream.finalMessage();
  assertEquals([final.content, final.stop_reason, final.usage.output_tokens], [
    whole.content,
    "tool_use",
    whole.usage.output_tokens,
  ]);
  assertEquals(pieces.join(""), '{"city": "Zürich", "days": 3}{}');
});

testAnthropic("messages obeys every tool choice", gateway, async ({ client }) => {
  const weather = ["get_weather", { city: "" }];
  const cases: [string, Anthropic.ToolChoice | undefined, unknown[]][] = [
    ["Hi", undefined, []],
    ["What is the weather?", undefined, [weather]],
    ["What is the weather?", { type: "auto" }, [weather]],
    ["What is the weather?", { type: "none" }, []],
    ["Hi", { type: "any" }, [weather]],
    ["Hi", { type: "tool", name: "clock" }, [["clock", {}]]],
    [TWO_CALLS, { type: "auto", disable_parallel_tool_use: true }, [["get_weather", { city: "Zürich", days: 3 }]]],
  ];
  for (const [content, tool_choice, calls] of cases) {
    const answer = await client.messages.create({
      model: ECHO,
      max_tokens: 200,
      messages: [{ role: "user", content }],
      tools: TOOLS,
      ...(tool_choice && { tool_choice }),
    });
    assertEquals(spelled(answer), calls, `${content} ${JSON.stringify(tool_choice)}`);
    assertEquals(answer.stop_reason, calls.length > 0 ? "tool_use" : "end_turn");
  }
});

testAnthropic("messages refuses a choice of a tool that is not there", gateway, async ({ client, Sdk }) => {
  const call = client.messages.create({
    model: ECHO,
    max_tokens: 200,
    messages: [{ role: "user", content: "Hi" }],
    tools: TOOLS,
    tool_choice: { type: "tool", name: "nobody" },
  });
  assertMatch((await caught(Sdk.BadRequestError, call)).message, /tool_choice/);
});

testAnthropic("toolRunner runs a function and ends with its result", gateway, async ({ client }) => {
  for (const stream of [false, true]) {
    const asked: unknown[] = [];
    const tool = betaTool({
      name: "get_weather",
      description: "Weather of a city",
      inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
      run: (input) => {
        asked.push(input);
        return "Snow";
      },
    });
    const final = await client.beta.messages.toolRunner({
      model: ECHO,
      max_tokens: 200,
      messages: [{ role: "user", content: 'call:get_weather {"city":"Oslo"}' }],
      tools: [tool],
      stream,
    }).runUntilDone();
    assertEquals(final.content.map((block) => block.type === "text" && block.text), ["Snow"]);
    assertEquals(asked, [{ city: "Oslo" }]);
  }
});
