/** Conversations of many turns in which the model thinks before every step: two questions, each with a call and its result. */
import { assert, assertEquals } from "@std/assert";
import type Anthropic from "anthropic-1";
import type OpenAI from "openai-7";
import { asInput, crossAnthropic, crossOpenai } from "./sdks.ts";
import { isNoticed, isSigned, lostReasoning } from "./signatures.ts";
import { sharedCrossing } from "./upstreams.ts";

const gateway = sharedCrossing();

const QUESTIONS = [
  'Now.\ncall:clock {"zone":"Oslo"}',
  'Later.\ncall:clock {"zone":"Rome"}\ncall:clock {"zone":"Bern"}',
];
const ANSWERS = ["Noon in Oslo", "Noon in Rome\nNoon in Bern"];
const PARAMETERS = { type: "object" as const, properties: { zone: { type: "string" } }, required: ["zone"] };

/** The result of the tool. */
function clock(input: string): string {
  return `Noon in ${JSON.parse(input).zone}`;
}

for (const stream of [false, true]) {
  const how = stream ? "streamed" : "whole";

  crossOpenai(`chat keeps its reasoning over tool loops, ${how}`, gateway, async ({ client, model, upstream }) => {
    const messages: OpenAI.ChatCompletionMessageParam[] = [];
    const ask = (messages: OpenAI.ChatCompletionMessageParam[]) =>
      client.chat.completions.create({
        model,
        messages,
        tools: [{ type: "function", function: { name: "clock", parameters: PARAMETERS } }],
        reasoning_effort: "low",
      });
    async function step(): Promise<OpenAI.ChatCompletionMessage> {
      const { response, data } = await ask(messages).withResponse();
      // OpenRouter's signature is in an envelope here, so its streams are translated, see below.
      const isTold = upstream === "gemini" || (model === "t/openrouter" && stream);
      if (!isTold) assertEquals(lostReasoning(response), []);
      if (!stream) return data.choices[0]?.message ?? fail();
      const { choices: [choice] } = await client.chat.completions.stream({
        model,
        messages,
        tools: [{ type: "function", function: { name: "clock", parameters: PARAMETERS } }],
        reasoning_effort: "low",
      }).finalChatCompletion();
      return choice?.message ?? fail();
    }
    for (const [index, content] of QUESTIONS.entries()) {
      messages.push({ role: "user", content });
      const calling = await step();
      messages.push(calling);
      assert(isSigned(calling));
      for (const call of calling.tool_calls ?? []) {
        if (call.type !== "function") continue;
        messages.push({ role: "tool", tool_call_id: call.id, content: clock(call.function.arguments) });
      }
      const telling = await step();
      assertEquals([telling.content, telling.tool_calls ?? []], [ANSWERS[index], []]);
      assert(isSigned(telling));
      messages.push(telling);
    }
    messages.push({ role: "user", content: "Thanks" });
    assertEquals((await step()).content, "Thanks");
    assert(await isNoticed(ask, messages));
  });

  crossOpenai(
    `responses keeps its reasoning over tool loops, ${how}`,
    gateway,
    async ({ client, model, upstream, keepsReasoning }) => {
      const input: OpenAI.Responses.ResponseInput = [];
      const request = {
        model,
        tools: [{ type: "function" as const, name: "clock", parameters: PARAMETERS, strict: false }],
        reasoning: { effort: "low" as const },
        include: ["reasoning.encrypted_content" as const],
        store: false,
      };
      const ask = (input: OpenAI.Responses.ResponseInput) => client.responses.create({ ...request, input });
      async function step(): Promise<OpenAI.Responses.Response> {
        const { response, data } = await ask(input).withResponse();
        // In a chat stream the signature follows the thought, which is not accepted back without it.
        const isTold = upstream === "gemini" || (upstream === "chat" && stream);
        if (keepsReasoning && !isTold) assertEquals(lostReasoning(response), []);
        return stream ? await client.responses.stream({ ...request, input }).finalResponse() : data;
      }
      for (const [index, content] of QUESTIONS.entries()) {
        input.push({ role: "user", content });
        const calling = await step();
        assert(isSigned(calling));
        input.push(...asInput(calling));
        for (const item of calling.output) {
          if (item.type !== "function_call") continue;
          input.push({ type: "function_call_output", call_id: item.call_id, output: clock(item.arguments) });
        }
        const telling = await step();
        assertEquals(telling.output_text, ANSWERS[index]);
        input.push(...asInput(telling));
      }
      input.push({ role: "user", content: "Thanks" });
      assertEquals((await step()).output_text, "Thanks");
      assertEquals(await isNoticed(ask, input), keepsReasoning);
    },
  );

  crossAnthropic(
    `messages keeps its reasoning over tool loops, ${how}`,
    gateway,
    async ({ client, model, upstream, keepsReasoning }) => {
      const messages: Anthropic.MessageParam[] = [];
      const request = {
        model,
        max_tokens: 2000,
        thinking: { type: "adaptive" as const },
        output_config: { effort: "medium" as const },
        tools: [{ name: "clock", input_schema: PARAMETERS }],
      };
      const ask = (messages: Anthropic.MessageParam[]) => client.messages.create({ ...request, messages });
      async function step(): Promise<Anthropic.Message> {
        const { response, data } = await ask(messages).withResponse();
        const isTold = upstream === "gemini" || (upstream === "chat" && stream);
        if (keepsReasoning && !isTold) assertEquals(lostReasoning(response), []);
        return stream ? await client.messages.stream({ ...request, messages }).finalMessage() : data;
      }
      for (const [index, content] of QUESTIONS.entries()) {
        messages.push({ role: "user", content });
        const calling = await step();
        assert(isSigned(calling.content));
        messages.push({ role: "assistant", content: calling.content }, {
          role: "user",
          content: calling.content.flatMap((block) =>
            block.type === "tool_use"
              ? [{ type: "tool_result" as const, tool_use_id: block.id, content: clock(JSON.stringify(block.input)) }]
              : []
          ),
        });
        const telling = await step();
        assertEquals(telling.content.flatMap((block) => block.type === "text" ? block.text : []), [ANSWERS[index]]);
        messages.push({ role: "assistant", content: telling.content });
      }
      messages.push({ role: "user", content: "Thanks" });
      const { content } = await step();
      assertEquals(content.flatMap((block) => block.type === "text" ? block.text : []), ["Thanks"]);
      assertEquals(await isNoticed(ask, messages), keepsReasoning);
    },
  );
}

function fail(): never {
  throw new Error("Expected an answer with a choice");
}
