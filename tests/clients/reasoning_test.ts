import { assertEquals } from "@std/assert";
import type Anthropic from "anthropic-1";
import type OpenAI from "openai-7";
import { crossAnthropic, crossOpenai } from "./sdks.ts";
import { isNoticed, isSigned } from "./signatures.ts";
import { sharedCrossing } from "./upstreams.ts";

const gateway = sharedCrossing();

const HELLO = "Hello there";

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
