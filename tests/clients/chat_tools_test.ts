import { assertEquals, assertMatch } from "@std/assert";
import type OpenAI from "openai-7";
import { crossOpenai } from "./sdks.ts";
import { customCall, sharedCrossing, twoCalls, weatherArguments } from "./upstreams.ts";

const gateway = sharedCrossing();

type Message = OpenAI.ChatCompletionMessageParam;

const WEATHER: OpenAI.ChatCompletionFunctionTool = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Weather of a city",
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer" } },
      required: ["city"],
    },
  },
};
const CLOCK: OpenAI.ChatCompletionFunctionTool = { type: "function", function: { name: "clock" } };
const SQL: OpenAI.ChatCompletionCustomTool = { type: "custom", custom: { name: "sql", format: { type: "text" } } };
const TOOLS = [WEATHER, CLOCK];
const SELECT = { client: "chat", name: "sql", input: 'select "a" from t' } as const;

/** Calls as the model spelled them, without their ids. */
function spelled(message: OpenAI.ChatCompletionMessage | undefined): unknown[] {
  return (message?.tool_calls ?? []).map((call) =>
    call.type === "function" ? [call.function.name, call.function.arguments] : [call.custom.name, call.custom.input]
  );
}

crossOpenai("chat calls tools in parallel and takes their results", gateway, async ({ client, model, upstream }) => {
  const messages: Message[] = [{ role: "user", content: twoCalls({ upstream }) }];
  const { choices: [first] } = await client.chat.completions.create({ model, messages, tools: TOOLS });
  assertEquals(first?.finish_reason, "tool_calls");
  assertEquals(first?.message.content, "Both.");
  assertEquals(spelled(first?.message), [
    ["get_weather", weatherArguments({ upstream })],
    ["clock", "{}"],
  ]);
  const [weather, clock] = first?.message.tool_calls ?? [];
  for (const call of [weather, clock]) assertMatch(call?.id ?? "", /^call_[0-9a-f_]+$/);
  if (first === undefined || weather === undefined || clock === undefined) return;

  messages.push(
    first.message,
    { role: "tool", tool_call_id: weather.id, content: "Rain" },
    { role: "tool", tool_call_id: clock.id, content: [{ type: "text", text: "Noon" }] },
  );
  const { choices: [second] } = await client.chat.completions.create({ model, messages, tools: TOOLS });
  assertEquals(second?.finish_reason, "stop");
  assertEquals([second?.message.content, second?.message.tool_calls], ["Rain\nNoon", undefined]);

  messages.push({ role: "assistant", content: "Rain\nNoon" }, { role: "user", content: "And the clock again?" });
  const { choices: [third] } = await client.chat.completions.create({ model, messages, tools: TOOLS });
  assertEquals(spelled(third?.message), [["clock", "{}"]]);
});

crossOpenai("chat streams the calls that create answers", gateway, async ({ client, model, upstream }) => {
  const request = { model, messages: [{ role: "user" as const, content: twoCalls({ upstream }) }], tools: TOOLS };
  const { choices: [whole] } = await client.chat.completions.create(request);
  const { choices: [streamed] } = await client.chat.completions.stream(request).finalChatCompletion();
  assertEquals(streamed?.finish_reason, "tool_calls");
  assertEquals(streamed?.message.content, whole?.message.content);
  assertEquals(spelled(streamed?.message), spelled(whole?.message));
  assertEquals(
    streamed?.message.tool_calls?.map(({ id }) => id),
    whole?.message.tool_calls?.map(({ id }) => id),
  );
});

crossOpenai("chat calls custom tools, and takes their results", gateway, async ({ client, model, upstream }) => {
  const messages: Message[] = [{ role: "user", content: customCall({ upstream }, SELECT) }];
  const request = { model, messages, tools: [SQL] };
  const { choices: [choice] } = await client.chat.completions.create(request);
  assertEquals(choice?.finish_reason, "tool_calls");
  assertEquals(spelled(choice?.message), [["sql", 'select "a" from t']]);
  const [call] = choice?.message.tool_calls ?? [];
  if (choice === undefined || call === undefined) return;
  messages.push(choice.message, { role: "tool", tool_call_id: call.id, content: "1 row" });
  const { choices: [next] } = await client.chat.completions.create(request);
  assertEquals(next?.message.content, "1 row");
});

crossOpenai("chat streams custom calls in pieces", gateway, async ({ client, model, upstream }) => {
  const stream = await client.chat.completions.create({
    model,
    messages: [{ role: "user", content: customCall({ upstream }, SELECT) }],
    tools: [SQL],
    stream: true,
  });
  let name = "";
  let input = "";
  for await (const { choices: [choice] } of stream) {
    for (const call of choice?.delta.tool_calls ?? []) {
      assertEquals(call.index, 0);
      name += call.custom?.name ?? "";
      input += call.custom?.input ?? "";
    }
  }
  assertEquals([name, input], ["sql", 'select "a" from t']);
});
