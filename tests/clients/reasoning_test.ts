import { assert, assertEquals, assertGreater, assertMatch } from "@std/assert";
import type Anthropic from "anthropic-1";
import type OpenAI from "openai-7";
import { asInput, caught, crossAnthropic, crossOpenai } from "./sdks.ts";
import { isNoticed, isSigned, lostReasoning } from "./signatures.ts";
import { ROUTES, sharedCrossing } from "./upstreams.ts";

const gateway = sharedCrossing();

const HELLO = "Hello there";
const THOUGHT = "I will repeat the user's message.";

/** Members of a chat message beyond the SDK's types. */
interface Reasoned {
  content?: string | null;
  reasoning_content?: string;
  reasoning_details?: { type: string; text?: string; signature?: string }[];
}

/** Reasoning without a signature of its own is shown but not accepted back: Gemini signs text, not thoughts. */
function isKept(lost: string[], upstream: string): boolean {
  return upstream === "gemini" || lost.length === 0;
}

crossOpenai("chat shows reasoning and takes it back", gateway, async ({ client, model, upstream }) => {
  const request = { model, reasoning_effort: "low" as const };
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: HELLO }];
  const { choices: [choice], usage } = await client.chat.completions.create({ ...request, messages });
  assert(choice !== undefined);
  const { reasoning_content, reasoning_details }: Reasoned = choice.message;
  assertEquals([reasoning_content, choice.message.content], [THOUGHT, HELLO]);
  assert(isSigned(reasoning_details));
  assertGreater(usage?.completion_tokens_details?.reasoning_tokens ?? 0, 0);

  const stream = client.chat.completions.stream({ ...request, messages });
  let streamed = "";
  stream.on("chunk", ({ choices: [choice] }) => streamed += (choice?.delta as Reasoned)?.reasoning_content ?? "");
  const final = (await stream.finalChatCompletion()).choices[0]?.message;
  assert(final !== undefined);
  assertEquals([streamed, final.content, isSigned(final)], [THOUGHT, HELLO, true]);

  for (const answer of [choice.message, final]) {
    const next = (history: OpenAI.ChatCompletionMessageParam[]) =>
      client.chat.completions.create({ ...request, messages: [...history, { role: "user", content: "Again" }] });
    const { data, response } = await next([...messages, answer]).withResponse();
    assertEquals(data.choices[0]?.message.content, "Again");
    assert(isKept(lostReasoning(response), upstream), lostReasoning(response).join());
    assert(await isNoticed((answer) => next([...messages, answer]), answer));
  }
});

crossOpenai("chat does not take back a thought that was changed", gateway, async ({ client, model, Sdk }) => {
  const request = { model, reasoning_effort: "low" as const };
  const { choices: [choice] } = await client.chat.completions.create({
    ...request,
    messages: [{ role: "user", content: HELLO }],
  });
  const changed = JSON.parse(JSON.stringify(choice?.message).replaceAll(THOUGHT, "No."));
  await caught(
    Sdk.BadRequestError,
    client.chat.completions.create({
      ...request,
      messages: [{ role: "user", content: HELLO }, changed, { role: "user", content: "Again" }],
    }),
  );
}, ROUTES.filter(({ upstream }) => upstream === "embedded" || upstream === "chat"));

crossOpenai("chat without reasoning shows none", gateway, async ({ client, model }) => {
  for (const extra of [{}, { reasoning_effort: "none" as const }]) {
    const { choices: [choice], usage } = await client.chat.completions.create({
      model,
      messages: [{ role: "user", content: HELLO }],
      ...extra,
    });
    assertEquals((choice?.message as Reasoned).reasoning_content, undefined);
    assertEquals(usage?.completion_tokens_details?.reasoning_tokens, 0);
  }
});

crossOpenai(
  "responses shows a summary of its reasoning, and takes the encrypted back",
  gateway,
  async ({ client, model, upstream, keepsReasoning }) => {
    const request: Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, "stream"> = {
      model,
      store: false,
      reasoning: { effort: "low", summary: "auto" },
      include: ["reasoning.encrypted_content"],
    };
    const user = (content: string) => ({ role: "user" as const, content });
    const first = await client.responses.create({ ...request, input: [user(HELLO)] });
    const final = await client.responses.stream({ ...request, input: [user(HELLO)] }).finalResponse();
    const answers: OpenAI.Responses.Response[] = [first, final];
    for (const answer of answers) {
      assertEquals(answer.output_text, HELLO);
      assertMatch(answer.output[0]?.id ?? "", /^rs_/);
      const reasoning = answer.output.filter((item) => item.type === "reasoning");
      assertEquals(reasoning.flatMap(({ summary }) => summary.map(({ text }) => text)), [THOUGHT]);
      assert(isSigned(reasoning));
      assertGreater(answer.usage?.output_tokens_details.reasoning_tokens ?? 0, 0);

      const next = (input: OpenAI.Responses.ResponseInput) =>
        client.responses.create({ ...request, input: [user(HELLO), ...input, user("Again")] });
      // The items that clients without summaries keep.
      const bare = asInput(answer).map((item) => item.type === "reasoning" ? { ...item, summary: [] } : item);
      for (const output of [asInput(answer), bare]) {
        const { data, response } = await next(output).withResponse();
        assertEquals(data.output_text, "Again");
        const lost = lostReasoning(response);
        // In a chat stream the signature follows the reasoning, which alone is not accepted back.
        const isWhole = !(upstream === "chat" && answer === final);
        if (keepsReasoning) assert(!isWhole || isKept(lost, upstream), lost.join());
        else assertEquals(lost, ["input.reasoning"]);
        assertEquals(await isNoticed(next, output), keepsReasoning);
      }
    }
  },
);

crossOpenai(
  "responses shows of its reasoning what was asked for",
  gateway,
  async ({ client, model, upstream }) => {
    const encrypted: OpenAI.Responses.ResponseIncludable = "reasoning.encrypted_content";
    const cases: [Partial<OpenAI.Responses.ResponseCreateParamsNonStreaming>, string[], number, boolean][] = [
      [{}, ["message"], 0, false],
      [{ reasoning: { effort: "none" } }, ["message"], 0, false],
      [{ reasoning: { effort: "high" } }, ["reasoning", "message"], 0, false],
      [{ reasoning: { effort: "high", summary: "detailed" } }, ["reasoning", "message"], 1, false],
      [{ reasoning: { effort: "high" }, include: [encrypted] }, ["reasoning", "message"], 0, true],
    ];
    for (const [extra, types, summaries, isEncrypted] of cases) {
      const { output } = await client.responses.create({ model, input: HELLO, ...extra });
      // Gemini signs the text, not the thought: the signature is an item of its own.
      const shown = output.filter((item) =>
        upstream !== "gemini" || item.type !== "reasoning" || summaries === 0 || item.summary.length > 0
      );
      assertEquals(shown.map(({ type }) => type), types, JSON.stringify(extra));
      for (const item of shown) {
        if (item.type !== "reasoning") continue;
        assertEquals([item.summary.length, item.encrypted_content !== undefined], [summaries, isEncrypted]);
      }
    }
  },
);

crossAnthropic(
  "messages thinks, and takes its thoughts back",
  gateway,
  async ({ client, model, upstream, keepsReasoning }) => {
    const wishes: Partial<Anthropic.MessageCreateParamsNonStreaming>[] = [
      { thinking: { type: "enabled", budget_tokens: 1024 } },
      { thinking: { type: "adaptive", display: "summarized" }, output_config: { effort: "medium" } },
    ];
    for (const wish of wishes) {
      const request: Anthropic.MessageCreateParamsNonStreaming = {
        model,
        max_tokens: 2000,
        ...wish,
        messages: [{ role: "user", content: HELLO }],
      };
      const whole = await client.messages.create(request);
      const final = await client.messages.stream(request).finalMessage();
      for (const answer of [whole, final]) {
        const thoughts = answer.content.map((block) => block.type === "thinking" ? block.thinking : "");
        const texts = answer.content.map((block) => block.type === "text" ? block.text : "");
        assertEquals([thoughts.join(""), texts.join("")], [THOUGHT, HELLO]);
        assertGreater(answer.usage.output_tokens, answer.usage.output_tokens_details?.thinking_tokens ?? 0);

        const next = (content: Anthropic.ContentBlockParam[]) =>
          client.messages.create({
            ...request,
            messages: [...request.messages, { role: "assistant", content }, { role: "user", content: "Again" }],
          });
        const { data, response } = await next(answer.content).withResponse();
        assertEquals(data.content.flatMap((block) => block.type === "text" ? block.text : []), ["Again"]);
        const lost = lostReasoning(response);
        // In a chat stream the signature follows the reasoning, which alone is not accepted back.
        const isWhole = !(upstream === "chat" && answer === final);
        if (keepsReasoning) assert(!isWhole || isKept(lost, upstream), lost.join());
        else assertEquals(lost, ["messages.thinking"]);
        // A signature after the last text is dropped, see below.
        const isLate = (upstream === "chat" || upstream === "gemini") && answer === final;
        assertEquals(await isNoticed(next, answer.content), keepsReasoning && !isLate);
      }
    }
  },
);

crossAnthropic(
  "messages withholds thoughts on request, and takes the signature back",
  gateway,
  async ({ client, model, keepsReasoning }) => {
    const request: Anthropic.MessageCreateParamsNonStreaming = {
      model,
      max_tokens: 2000,
      thinking: { type: "adaptive", display: "omitted" },
      output_config: { effort: "medium" },
      messages: [{ role: "user", content: HELLO }],
    };
    const first = await client.messages.create(request);
    const thoughts = first.content.filter((block) => block.type === "thinking");
    assertEquals([thoughts.map(({ thinking }) => thinking).join(""), isSigned(thoughts)], ["", true]);
    const next = (content: Anthropic.ContentBlockParam[]) =>
      client.messages.create({
        ...request,
        messages: [...request.messages, { role: "assistant", content }, { role: "user", content: "Again" }],
      });
    const { data } = await next(first.content).withResponse();
    assertEquals(data.content.flatMap((block) => block.type === "text" ? block.text : []), ["Again"]);
    assertEquals(await isNoticed(next, first.content), keepsReasoning);
  },
);

crossAnthropic("messages never ends its words with a thought", gateway, async ({ client, model }) => {
  const request: Anthropic.MessageCreateParamsNonStreaming = {
    model,
    max_tokens: 2000,
    thinking: { type: "adaptive" },
    output_config: { effort: "medium" },
    messages: [{ role: "user", content: HELLO }],
  };
  // Claude Code prints the last block of an answer, and nothing where that is a thought.
  for (
    const { content } of [await client.messages.create(request), await client.messages.stream(request).finalMessage()]
  ) {
    assertEquals([content[0]?.type, content.at(-1)?.type], ["thinking", "text"]);
  }
});
