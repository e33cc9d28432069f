/** LangChain for JavaScript: its models and an agent. */
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatAnthropic } from "@langchain/anthropic";
import { ChatGoogleGenerativeAI } from "@langchain/google-genai";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent } from "langchain";
import { clock, expect, PNG, QUESTIONS, runChecks, SLOW, TWO_IMAGES, ZONE } from "./checks.mjs";

const NAME = process.env.SLUICE_CLIENT;
const CLOCK = tool(clock, { name: "clock", description: "The time", schema: ZONE });

const MODELS = {
  chat: ({ url, key, model }) =>
    new ChatOpenAI({ model, apiKey: key, maxRetries: 0, configuration: { baseURL: `${url}/v1` } }),
  responses: ({ url, key, model }) =>
    new ChatOpenAI({
      ...{ model, apiKey: key, maxRetries: 0, useResponsesApi: true },
      configuration: { baseURL: `${url}/v1` },
    }),
  messages: ({ url, key, model }) =>
    new ChatAnthropic({ model, apiKey: key, maxRetries: 0, anthropicApiUrl: `${url}/anthropic` }),
  gemini: ({ url, key, model }) => new ChatGoogleGenerativeAI({ model, apiKey: key, maxRetries: 0, baseUrl: url }),
};

// Google's package has a promise without a handler, which would end the program when a stream is left.
process.on("unhandledRejection", (error) => {
  if (!/Error reading from the stream/.test(String(error))) throw error;
});

/** Streams an answer and joins its chunks. */
async function stream(model, messages) {
  let whole;
  for await (const chunk of await model.stream(messages)) whole = whole === undefined ? chunk : whole.concat(chunk);
  return whole;
}

for (const [protocol, make] of Object.entries(MODELS)) {
  await runChecks(`${NAME}, ${protocol}`, (route) => {
    const model = make(route);
    const checks = {
      async streaming() {
        expect((await stream(model, "Plain words")).text, "Plain words");
      },
      async tools() {
        for (
          const ask of [
            (messages) => model.bindTools([CLOCK]).invoke(messages),
            (messages) => stream(model.bindTools([CLOCK]), messages),
          ]
        ) {
          const messages = [];
          for (const [question, wanted] of QUESTIONS) {
            messages.push(new HumanMessage(question));
            const calling = await ask(messages);
            messages.push(calling);
            for (const { id, args } of calling.tool_calls) {
              messages.push(new ToolMessage({ tool_call_id: id, name: "clock", content: clock(args) }));
            }
            const telling = await ask(messages);
            expect(telling.text, wanted);
            messages.push(telling);
          }
        }
      },
      async agent() {
        const agent = createAgent({ model, tools: [CLOCK] });
        const { messages } = await agent.invoke({ messages: [new HumanMessage(QUESTIONS[1][0])] });
        expect(messages.at(-1).text, QUESTIONS[1][1]);
      },
      async images() {
        const image = { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } };
        const { text } = await model.invoke([
          new HumanMessage({ content: [{ type: "text", text: "Two." }, image, image] }),
        ]);
        expect(text, TWO_IMAGES);
      },
      async abort() {
        const leaving = new AbortController();
        try {
          for await (const _ of await model.stream(SLOW, { signal: leaving.signal })) leaving.abort();
        } catch (error) {
          if (!leaving.signal.aborted) throw error;
        }
        expect(
          (await model.invoke([new HumanMessage("Hello"), new AIMessage("Hi"), new HumanMessage("Back")])).text,
          "Back",
        );
      },
    };
    // Google's package refuses images for models without "gemini" or "vision" in their names.
    const { images: _images, ...others } = checks;
    return protocol === "gemini" ? others : checks;
  });
}
