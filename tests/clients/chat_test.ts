import { assert, assertEquals, assertMatch } from "@std/assert";
import type OpenAI from "openai-7";
import { crossOpenai } from "./sdks.ts";
import { sharedCrossing } from "./upstreams.ts";

const gateway = sharedCrossing();

type Request = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, "stream" | "model">;

const HELLO: Request = {
  messages: [{ role: "system", content: "Be brief." }, { role: "user", content: "Hello there, gateway" }],
};
const SCHEMA = {
  name: "city",
  schema: {
    type: "object",
    properties: { name: { type: "string", enum: ["Oslo"] }, people: { type: "integer", minimum: 3 } },
    required: ["name", "people"],
    additionalProperties: false,
  },
  strict: true,
};

/** The members that two answers to the same request share. */
function lasting({ id: _, created: __, ...rest }: OpenAI.ChatCompletion): unknown {
  return JSON.parse(JSON.stringify(rest));
}

crossOpenai("chat answers with a whole completion", gateway, async ({ client, model }) => {
  const answer = await client.chat.completions.create({ ...HELLO, model });
  assertMatch(answer.id, /^chatcmpl-./);
  assertMatch(answer._request_id ?? "", /^req_./);
  assert(Math.abs(answer.created - Date.now() / 1000) < 60);
  assertEquals(lasting(answer), {
    object: "chat.completion",
    model,
    choices: [{
      index: 0,
      message: { role: "assistant", content: "Hello there, gateway", refusal: null },
      logprobs: null,
      finish_reason: "stop",
    }],
    usage: answer.usage,
  });
  const { prompt_tokens = 0, completion_tokens, total_tokens } = answer.usage ?? {};
  assertEquals([prompt_tokens > 4, completion_tokens, total_tokens], [true, 4, prompt_tokens + 4]);
});

crossOpenai("the chat stream helper ends with what create answers", gateway, async ({ client, model }) => {
  const requests: Request[] = [
    HELLO,
    { ...HELLO, max_completion_tokens: 2 },
    { ...HELLO, stop: [" there"] },
    { ...HELLO, response_format: { type: "json_object" } },
  ];
  for (const request of requests.map((request) => ({ ...request, model }))) {
    const whole = await client.chat.completions.create(request);
    const stream = client.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
    const texts: string[] = [];
    stream.on("content", (delta) => texts.push(delta));
    const final = JSON.parse(JSON.stringify(await stream.finalChatCompletion()));
    assertEquals(texts.join(""), whole.choices[0]?.message.content);
    for (const { message } of final.choices) delete message.parsed;
    // A stream has no header after its end: the cost is beside the usage.
    const { sluice_cost, ...same } = final;
    assertEquals([sluice_cost, lasting(same)], ["0", lasting(whole)]);
  }
});

crossOpenai(
  "chat parses an answer in a JSON schema, whole and streamed",
  gateway,
  async ({ client, model, upstream }) => {
    const request = { ...HELLO, model, response_format: { type: "json_schema" as const, json_schema: SCHEMA } };
    // Anthropic's schemas do not support `minimum`.
    const expected = { name: "Oslo", people: upstream === "messages" ? 0 : 3 };
    const { choices: [whole] } = await client.chat.completions.parse(request);
    assertEquals(whole?.message.parsed, expected);
    const { choices: [streamed] } = await client.chat.completions.stream(request).finalChatCompletion();
    // Version 6 parses only whole answers.
    assertEquals(JSON.parse(streamed?.message.content ?? ""), expected);
  },
);
