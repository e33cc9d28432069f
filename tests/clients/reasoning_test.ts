import { assert, assertEquals, assertGreater, assertMatch } from "@std/assert";
import type Anthropic from "anthropic-1";
import type OpenAI from "openai-7";
import { sharedGateway } from "./gateway.ts";
import { asInput, caught, ECHO, testAnthropic, testOpenai } from "./sdks.ts";

const gateway = sharedGateway();

const HELLO = "Hello there";
const THOUGHT = "I will repeat the user's message.";

/** A signature of the same form that nobody wrote. */
function tampered(signature: string): string {
  const middle = Math.floor(signature.length / 2);
  return `${signature.slice(0, middle)}${signature[middle] === "A" ? "B" : "A"}${signature.slice(middle + 1)}`;
}

/** What a chat message carries beyond the SDK's types. */
interface Reasoned {
  content?: string | null;
  reasoning_content?: string;
  reasoning_details?: { type: string; text: string; signature: string }[];
}

testOpenai("chat shows reasoning and takes it back", gateway, async ({ client, Sdk }) => {
  const request = { model: ECHO, reasoning_effort: "low" as const };
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: HELLO }];
  const { choices: [choice], usage } = await client.chat.completions.create({ ...request, messages });
  assert(choice !== undefined);
  const { reasoning_content, reasoning_details: [detail] = [] }: Reasoned = choice.message;
  assertEquals([reasoning_content, choice.message.content], [THOUGHT, HELLO]);
  assertEquals([detail?.type, detail?.text], ["reasoning.text", THOUGHT]);
  assertGreater(usage?.completion_tokens_details?.reasoning_tokens ?? 0, 0);

  const stream = await client.chat.completions.create({ ...request, messages, stream: true });
  const deltas = (await Array.fromAsync(stream)).flatMap(({ choices }) => choices.map(({ delta }): Reasoned => delta));
  assertEquals(deltas.map((delta) => delta.reasoning_content ?? "").join(""), THOUGHT);
  assertEquals(deltas.flatMap((delta) => delta.reasoning_details ?? []), [detail]);

  function next(assistant: OpenAI.ChatCompletionMessageParam) {
    return client.chat.completions.create({
      ...request,
      messages: [...messages, assistant, { role: "user", content: "Again" }],
    });
  }
  assertEquals((await next(choice.message)).choices[0]?.message.content, "Again");
  const forged = {
    ...choice.message,
    reasoning_details: [{ ...detail, signature: tampered(detail?.signature ?? "") }],
  };
  await caught(Sdk.BadRequestError, next(forged));
  await caught(
    Sdk.BadRequestError,
    next({ ...choice.message, ...{ reasoning_details: [{ ...detail, text: "No." }] } }),
  );
});

testOpenai("chat without reasoning shows none", gateway, async ({ client }) => {
  for (const extra of [{}, { reasoning_effort: "none" as const }]) {
    const { choices: [choice], usage } = await client.chat.completions.create({
      model: ECHO,
      messages: [{ role: "user", content: HELLO }],
      ...extra,
    });
    assertEquals((choice?.message as Reasoned).reasoning_content, undefined);
    assertEquals(usage?.completion_tokens_details?.reasoning_tokens, 0);
  }
});

testOpenai(
  "responses shows a summary of its reasoning, and takes the encrypted back",
  gateway,
  async ({ client, Sdk }) => {
    const request: OpenAI.Responses.ResponseCreateParamsNonStreaming = {
      model: ECHO,
      store: false,
      reasoning: { effort: "low", summary: "auto" },
      include: ["reasoning.encrypted_content"],
    };
    const user = (content: string) => ({ role: "user" as const, content });
    const first = await client.responses.create({ ...request, input: [user(HELLO)] });
    const [reasoning, message] = first.output;
    assert(reasoning?.type === "reasoning" && message?.type === "message");
    assertMatch(reasoning.id, /^rs_/);
    assertEquals(reasoning.summary.map(({ text }) => text), [THOUGHT]);
    assertGreater(first.usage?.output_tokens_details.reasoning_tokens ?? 0, 0);

    const whole = await client.responses.create({ ...request, input: [user(HELLO), ...asInput(first), user("Again")] });
    assertEquals(whole.output_text, "Again");
    // What clients that show no summaries keep.
    const bare = { ...reasoning, summary: [] };
    const kept = await client.responses.create({ ...request, input: [user(HELLO), bare, message, user("Again")] });
    assertEquals(kept.output_text, "Again");
    const forged = { ...bare, encrypted_content: tampered(reasoning.encrypted_content ?? "") };
    const error = await caught(
      Sdk.BadRequestError,
      client.responses.create({ ...request, input: [user(HELLO), forged, message, user("Again")] }),
    );
    assertEquals(error.param, "input");
  },
);

testOpenai("responses shows of its reasoning what was asked for", gateway, async ({ client }) => {
  const encrypted: OpenAI.Responses.ResponseIncludable = "reasoning.encrypted_content";
  const cases: [Partial<OpenAI.Responses.ResponseCreateParamsNonStreaming>, string[], number, boolean][] = [
    [{}, ["message"], 0, false],
    [{ reasoning: { effort: "none" } }, ["message"], 0, false],
    [{ reasoning: { effort: "high" } }, ["reasoning", "message"], 0, false],
    [{ reasoning: { effort: "high", summary: "detailed" } }, ["reasoning", "message"], 1, false],
    [{ reasoning: { effort: "high" }, include: [encrypted] }, ["reasoning", "message"], 0, true],
  ];
  for (const [extra, types, summaries, isEncrypted] of cases) {
    const { output } = await client.responses.create({ model: ECHO, input: HELLO, ...extra });
    assertEquals(output.map(({ type }) => type), types, JSON.stringify(extra));
    for (const item of output) {
      if (item.type !== "reasoning") continue;
      assertEquals([item.summary.length, item.encrypted_content !== undefined], [summaries, isEncrypted]);
    }
  }
});

testAnthropic("messages thinks, and takes its thoughts back", gateway, async ({ client, Sdk }) => {
  const request: Anthropic.MessageCreateParamsNonStreaming = {
    model: ECHO,
    max_tokens: 2000,
    thinking: { type: "enabled", budget_tokens: 1024 },
    messages: [{ role: "user", content: HELLO }],
  };
  const first = await client.messages.create(request);
  const [thinking, text] = first.content;
  assert(thinking?.type === "thinking" && text?.type === "text");
  assertEquals([thinking.thinking, text.text], [THOUGHT, HELLO]);
  assertEquals(first.usage.output_tokens > (first.usage.output_tokens_details?.thinking_tokens ?? 0), true);

  function next(...content: Anthropic.ContentBlockParam[]) {
    const messages: Anthropic.MessageParam[] = [
      ...request.messages,
      { role: "assistant", content },
      { role: "user", content: "Again" },
    ];
    return client.messages.create({ ...request, messages });
  }
  assertEquals((await next(thinking, text)).content.at(-1), { type: "text", text: "Again" } as Anthropic.TextBlock);
  for (
    const forged of [
      { ...thinking, signature: tampered(thinking.signature) },
      { ...thinking, thinking: "Something else." },
    ]
  ) assertMatch((await caught(Sdk.BadRequestError, next(forged, text))).message, /signature/);
});

testAnthropic("messages withholds thoughts on request, and takes the signature back", gateway, async ({ client }) => {
  const request: Anthropic.MessageCreateParamsNonStreaming = {
    model: ECHO,
    max_tokens: 2000,
    thinking: { type: "adaptive", display: "omitted" },
    output_config: { effort: "medium" },
    messages: [{ role: "user", content: HELLO }],
  };
  const first = await client.messages.stream(request).finalMessage();
  const [thinking] = first.content;
  assert(thinking?.type === "thinking");
  assertEquals([thinking.thinking, thinking.signature !== ""], ["", true]);
  const second = await client.messages.create({
    ...request,
    messages: [...request.messages, { role: "assistant", content: first.content }, { role: "user", content: "Again" }],
  });
  assertEquals(second.content.at(-1), { type: "text", text: "Again" } as Anthropic.TextBlock);
});

testAnthropic("messages thinks between tool calls", gateway, async ({ client }) => {
  const request: Anthropic.MessageCreateParamsNonStreaming = {
    model: ECHO,
    max_tokens: 2000,
    thinking: { type: "adaptive" },
    tools: [{ name: "clock", input_schema: { type: "object" } }],
    messages: [{ role: "user", content: "call:clock {}" }],
  };
  const first = await client.messages.create(request);
  const [thinking, call] = first.content;
  assert(thinking?.type === "thinking" && call?.type === "tool_use");
  const second = await client.messages.create({
    ...request,
    messages: [
      ...request.messages,
      { role: "assistant", content: first.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "Noon" }] },
    ],
  });
  assertEquals(second.content.map(({ type }) => type), ["thinking", "text"]);
  assertEquals(second.content.at(-1), { type: "text", text: "Noon" } as Anthropic.TextBlock);
});
