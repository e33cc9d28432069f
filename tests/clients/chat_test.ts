import { assert, assertEquals, assertMatch } from "@std/assert";
import type OpenAI from "openai-7";
import { caught, crossOpenai } from "./sdks.ts";
import { droppedNames, ROUTES, sharedCrossing } from "./upstreams.ts";

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
/** Twenty tokens. */
const NUMBERS = "one two three four five six seven eight nine ten one two three four five six seven eight nine ten";

const PIXELS = "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAwCAYAAAChS3wfAAAAAElFTkSuQmCC";

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

crossOpenai("chat streams the same text in many chunks of one id", gateway, async ({ client, model }) => {
  const whole = await client.chat.completions.create({ ...HELLO, model });
  for (const include_usage of [false, true]) {
    const chunks = await Array.fromAsync(
      await client.chat.completions.create({ ...HELLO, model, stream: true, stream_options: { include_usage } }),
    );
    assertEquals(new Set(chunks.map(({ id, created, model }) => `${id} ${created} ${model}`)).size, 1);
    const choices = chunks.flatMap(({ choices }) => choices);
    assertEquals(choices[0]?.delta.role, "assistant");
    assertEquals(choices.map(({ delta }) => delta.content ?? "").join(""), "Hello there, gateway");
    assert(choices.filter(({ delta }) => delta.content).length >= 4);
    assertEquals(choices.flatMap(({ finish_reason }) => finish_reason ?? []), ["stop"]);
    assertEquals(choices.at(-1)?.finish_reason, "stop");
    assertEquals(
      chunks.map(({ usage }) => usage).filter((usage) => usage !== undefined && usage !== null),
      include_usage ? [whole.usage] : [],
    );
    assertEquals(chunks.at(-1)?.choices.length, include_usage ? 0 : 1);
  }
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

crossOpenai("chat obeys limits and stop sequences", gateway, async ({ client, model }) => {
  const messages: Request["messages"] = [{ role: "user", content: NUMBERS }];
  const first = (words: number) => NUMBERS.split(" ").slice(0, words).join(" ");
  const cases: [Partial<Request>, string, string, number][] = [
    [{ messages, max_completion_tokens: 16 }, first(16), "length", 16],
    [{ messages, max_tokens: 18 }, first(18), "length", 18],
    [{ messages, max_tokens: 1, max_completion_tokens: 20 }, NUMBERS, "stop", 20],
    [{ stop: "," }, "Hello there", "stop", 2],
    [{ stop: ["nothing", " there"] }, "Hello", "stop", 1],
  ];
  for (const [extra, content, reason, tokens] of cases) {
    const { choices: [choice], usage } = await client.chat.completions.create({ ...HELLO, model, ...extra });
    assertEquals([choice?.message.content, choice?.finish_reason, usage?.completion_tokens], [content, reason, tokens]);
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

crossOpenai("chat sees images", gateway, async ({ client, model }) => {
  const { choices: [choice] } = await client.chat.completions.create({
    model,
    messages: [{
      role: "user",
      content: [
        { type: "text", text: "Look:" },
        { type: "image_url", image_url: { url: `data:image/png;base64,${PIXELS}`, detail: "low" } },
      ],
    }],
  });
  assertEquals(choice?.message.content, "Look:\n[image 64x48 png]");
});

crossOpenai("a chat stream can be left, and the gateway goes on", gateway, async ({ client, Sdk, model }) => {
  const long = "one two three four ".repeat(5000);
  const stream = await client.chat.completions.create({
    model,
    messages: [{ role: "user", content: long }],
    stream: true,
  });
  let chunks = 0;
  for await (const _ of stream) {
    if (++chunks === 3) stream.controller.abort();
  }
  assert(chunks < 1000, `${chunks} chunks`);
  const helper = client.chat.completions.stream({ model, messages: [{ role: "user", content: long }] });
  helper.once("chunk", () => helper.abort());
  await caught(Sdk.APIUserAbortError, helper.finalChatCompletion());
  const { choices: [choice] } = await client.chat.completions.create({ ...HELLO, model });
  assertEquals(choice?.message.content, "Hello there, gateway");
});

crossOpenai(
  "chat has a limit below the upstream's floor raised, and is told so",
  gateway,
  async ({ client, model }) => {
    const { data, response } = await client.chat.completions.create({
      model,
      messages: [{ role: "user", content: NUMBERS }],
      max_completion_tokens: 2,
    }).withResponse();
    assertEquals([data.usage?.completion_tokens, data.choices[0]?.finish_reason], [16, "length"]);
    assertEquals(droppedNames(response), ["max_completion_tokens"]);
  },
  ROUTES.filter(({ upstream }) => upstream === "responses"),
);
