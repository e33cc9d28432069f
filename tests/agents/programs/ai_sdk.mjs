/** The AI SDK with each of its providers that a gateway can play, in default settings. */
import * as ai from "ai";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { clock, expect, PNG, QUESTIONS, runChecks, SLOW, TWO_IMAGES, ZONE } from "./checks.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;
const NAME = process.env.SLUICE_CLIENT;

const PROVIDERS = {
  responses: ({ url, key, model }) => createOpenAI({ baseURL: `${url}/v1`, apiKey: key })(model),
  chat: ({ url, key, model }) => createOpenAI({ baseURL: `${url}/v1`, apiKey: key }).chat(model),
  compatible: ({ url, key, model }) =>
    createOpenAICompatible({ name: "sluice", baseURL: `${url}/v1`, apiKey: key })(model),
  messages: ({ url, key, model }) => createAnthropic({ baseURL: `${url}/anthropic/v1`, apiKey: key })(model),
  gemini: ({ url, key, model }) => createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey: key })(model),
};

const tools = {
  clock: ai.tool({ description: "The time", inputSchema: ai.jsonSchema(ZONE), execute: clock }),
  photo: ai.tool({
    description: "A photo",
    inputSchema: ai.jsonSchema({ type: "object", properties: {} }),
    execute: () => PNG,
    toModelOutput: (result) => ({
      type: "content",
      value: [{ type: "text", text: "Taken" }, {
        type: "media",
        mediaType: "image/png",
        data: typeof result === "string" ? result : result.output,
      }],
    }),
  }),
};

/** A multi-turn conversation with tools. */
async function converse(model, stream) {
  const messages = [];
  for (const [content, wanted] of QUESTIONS) {
    messages.push({ role: "user", content });
    const options = { model, tools, messages, stopWhen: (ai.stepCountIs ?? ai.isStepCount)(5), maxRetries: 0 };
    const failures = [];
    const result = stream
      ? ai.streamText({ ...options, onError: ({ error }) => failures.push(error) })
      : await ai.generateText(options);
    const text = await Promise.resolve(result.text).catch((error) => {
      throw failures[0] ?? error;
    });
    // The provider of Google puts results into an object.
    const plain = text.replaceAll(/\{"name":"clock","content":"([^"]*)"\}/g, "$1");
    expect([plain, (await result.steps).length], [wanted, 2]);
    messages.push(...(await result.response).messages);
  }
  messages.push({ role: "user", content: "Thanks" });
  expect((await ai.generateText({ model, tools, messages, maxRetries: 0 })).text, "Thanks");
}

for (const [provider, make] of Object.entries(PROVIDERS)) {
  await runChecks(`${NAME}, ${provider}`, (route) => {
    const model = make(route);
    return {
      async streaming() {
        const { textStream } = ai.streamText({ model, prompt: "Plain words", maxRetries: 0 });
        let text = "";
        for await (const piece of textStream) text += piece;
        expect(text, "Plain words");
      },
      async tools() {
        await converse(model, false);
        await converse(model, true);
      },
      async images() {
        const image = { type: "image", image: PNG, mediaType: "image/png" };
        const content = [{ type: "text", text: "Two." }, image, image];
        const { text } = await ai.generateText({ model, messages: [{ role: "user", content }], maxRetries: 0 });
        expect(text, TWO_IMAGES);
      },
      async "image results"() {
        const stopWhen = (ai.stepCountIs ?? ai.isStepCount)(3);
        const { text } = await ai.generateText({ model, tools, prompt: "call:photo {}", stopWhen, maxRetries: 0 });
        if (!text.includes("Taken")) throw new Error(text);
      },
      async object() {
        const schema = ai.jsonSchema({
          type: "object",
          properties: { city: { type: "string" } },
          required: ["city"],
          additionalProperties: false,
        });
        const prompt = '{"city":"Oslo"}';
        const { object } = ai.generateObject !== undefined
          ? await ai.generateObject({ model, schema, prompt, maxRetries: 0 })
          : { object: (await ai.generateText({ model, output: ai.Output.object({ schema }), prompt })).output };
        if (object === null || typeof object !== "object") throw new Error(JSON.stringify(object));
      },
      async abort() {
        const leaving = new AbortController();
        const { textStream } = ai.streamText({ model, prompt: SLOW, abortSignal: leaving.signal, maxRetries: 0 });
        try {
          for await (const _ of textStream) leaving.abort();
        } catch (error) {
          if (!leaving.signal.aborted) throw error;
        }
        expect((await ai.generateText({ model, prompt: "Back", maxRetries: 0 })).text, "Back");
      },
    };
  });
}
