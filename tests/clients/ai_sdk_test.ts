/** The Vercel AI SDK with its default `openai` provider and settings: it names items of earlier answers by their ids. */
import { assert, assertEquals } from "@std/assert";
import * as ai5 from "ai-5";
import * as ai6 from "ai-6";
import * as ai7 from "ai-7";
import { createOpenAI as createOpenAI2 } from "ai-openai-2";
import { createOpenAI as createOpenAI3 } from "ai-openai-3";
import { createOpenAI as createOpenAI4 } from "ai-openai-4";
import { skipInQuick } from "../support/skip.ts";
import { routesOfTest, sharedCrossing } from "./upstreams.ts";

Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });
const gateway = sharedCrossing();

// The used types are equal in all versions, but the compiler compares everything.
type Ai = typeof ai7;
type CreateOpenAI = typeof createOpenAI4;

const NEWEST = { version: "7", ai: ai7, createOpenAI: createOpenAI4 };
const VERSIONS: readonly { version: string; ai: Ai; createOpenAI: CreateOpenAI }[] =
  skipInQuick("Older versions of the AI SDK") ? [NEWEST] : [
    { version: "5", ai: ai5 as unknown as Ai, createOpenAI: createOpenAI2 as unknown as CreateOpenAI },
    { version: "6", ai: ai6 as unknown as Ai, createOpenAI: createOpenAI3 as unknown as CreateOpenAI },
    NEWEST,
  ];

const QUESTIONS = [
  'Now.\ncall:clock {"zone":"Oslo"}',
  'Later.\ncall:clock {"zone":"Rome"}\ncall:clock {"zone":"Bern"}',
];
const ANSWERS = ["Noon in Oslo", "Noon in Rome\nNoon in Bern"];

/** Types of the input items that a request had. */
function itemTypes(body: unknown): string[] {
  const { input = [] } = (typeof body === "string" ? JSON.parse(body) : {}) as { input?: { type?: string }[] };
  return input.map(({ type = "message" }) => type);
}

for (const { version, ai, createOpenAI } of VERSIONS) {
  for (const route of routesOfTest()) {
    for (const stream of [false, true]) {
      const how = stream ? "streamed" : "whole";
      Deno.test(`ai ${version}, ${route.model}: default settings over tool loops, ${how}`, async () => {
        const { url, key } = gateway(route);
        const sent: string[] = [];
        const openai = createOpenAI({
          baseURL: `${url}/v1`,
          apiKey: key,
          fetch: (input, init) => {
            sent.push(...itemTypes(init?.body));
            return fetch(input, init);
          },
        });
        const options = {
          model: openai(route.model),
          tools: {
            clock: ai.tool({
              inputSchema: ai.jsonSchema<{ zone: string }>({
                type: "object",
                properties: { zone: { type: "string" } },
                required: ["zone"],
                additionalProperties: false,
              }),
              execute: ({ zone }) => `Noon in ${zone}`,
            }),
          },
          stopWhen: ai.stepCountIs(5),
          maxRetries: 0,
          // Version 5 sends no reasoning options for unknown models.
          providerOptions: { openai: { reasoningEffort: "low", reasoningSummary: "auto", forceReasoning: true } },
        };
        const messages: ai7.ModelMessage[] = [];
        for (const [index, content] of QUESTIONS.entries()) {
          messages.push({ role: "user", content });
          const result = stream
            ? ai.streamText({ ...options, messages, onError: ({ error }) => void console.error(error) })
            : await ai.generateText({ ...options, messages });
          const [text, steps, response] = await Promise.all([result.text, result.steps, result.response]);
          assertEquals([text, steps.length], [ANSWERS[index], 2]);
          messages.push(...response.messages);
        }
        assert(sent.includes("item_reference"), sent.join());
        assert(!sent.includes("reasoning"), sent.join());
      });
    }
  }
}
