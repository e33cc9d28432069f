import { assertEquals, assertMatch } from "@std/assert";
import Anthropic from "anthropic-1";
import { betaTool } from "anthropic-1/helpers/beta/json-schema";
import { crossAnthropic } from "./sdks.ts";
import { routesOfTest, sharedCrossing } from "./upstreams.ts";

const gateway = sharedCrossing();

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

crossAnthropic(
  "messages calls tools in parallel and takes their results",
  gateway,
  async ({ client, model, upstream }) => {
    const messages: Anthropic.MessageParam[] = [{ role: "user", content: TWO_CALLS }];
    const request = { model, max_tokens: 200, messages, tools: TOOLS };
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
      // The text used by protocols without an error flag.
      `get_weather done\n${["chat", "responses"].includes(upstream) ? "[tool error]" : "[error]"} clock done`,
    ]);
  },
);

crossAnthropic("messages streams the calls that create answers", gateway, async ({ client, model, upstream }) => {
  const request = {
    model,
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
  // Gemini's calls are objects: their white space is not kept.
  assertEquals(
    pieces.join(""),
    upstream === "gemini" ? '{"city":"Zürich","days":3}{}' : '{"city": "Zürich", "days": 3}{}',
  );
});

for (const route of routesOfTest()) {
  const { model } = route;
  Deno.test(`@anthropic-ai/sdk 1, ${model}: toolRunner continues with the conversation kept by the client`, async () => {
    const bodies: { thread?: unknown; messages: unknown[] }[] = [];
    const client = new Anthropic({
      baseURL: `${gateway(route).url}/anthropic`,
      apiKey: gateway(route).key,
      maxRetries: 0,
      fetch: (url, init) => {
        bodies.push(JSON.parse(String(init?.body)));
        return fetch(url, init);
      },
    });
    const final = await client.beta.messages.toolRunner({
      model,
      max_tokens: 200,
      messages: [{ role: "user", content: "call:clock {}" }],
      tools: [betaTool({
        name: "clock",
        description: "Tells the time",
        inputSchema: { type: "object", properties: {} },
        run: () => "Noon",
      })],
    }).runUntilDone();
    assertEquals(final.content.map((block) => block.type === "text" && block.text), ["Noon"]);
    // The refused request, the same without `thread`, and the whole conversation with the result.
    assertEquals(bodies.map(({ thread, messages }) => [thread, messages.length]), [
      [{ type: "create" }, 1],
      [undefined, 1],
      [undefined, 3],
    ]);
  });
}
