/** Checks of Gemini's protocol: models, answers, streams, tools, and thoughts with their signatures. */
import { z } from "zod";
import { isObject, type JsonObject } from "../../json/mod.ts";
import { type Checks, expectThat, Mismatch, shaped, Skip } from "../check.ts";
import { checkHeader, HTTP_CHECKS } from "../http_checks.ts";
import { HALT, HALTING, READY, SYSTEM } from "../prompts.ts";
import { type ProtocolChecks, type ProtocolClient, withClient } from "../protocol_client.ts";
import { checkCalls, checkStreamedSchema, checkSystem, sharedChecks } from "../shared_checks.ts";
import { DONE, objectOf } from "../sse.ts";
import {
  type AnswerPart,
  checkUsage,
  GEMINI,
  type GeminiAnswer,
  type GenerateAnswer,
  methodPath,
  userContent,
} from "./forms.ts";

type GeminiClient = ProtocolClient<GeminiAnswer, GenerateAnswer>;

const modelForm = z.object({
  name: z.string().startsWith("models/"),
  version: z.string(),
  supportedGenerationMethods: z.array(z.string()),
  inputTokenLimit: z.number().int().min(1).optional(),
  outputTokenLimit: z.number().int().min(1).optional(),
});

async function getModels(client: GeminiClient, path: string): Promise<JsonObject> {
  return objectOf((await client.context.good({ method: "GET", path })).text, "the models");
}

function checkModel(client: GeminiClient, row: unknown): void {
  const { name, supportedGenerationMethods: methods } = shaped(modelForm, row, "the model");
  const expected = `models/${client.context.subject.model}`;
  expectThat(name === expected, expected, name);
  expectThat(methods.includes("generateContent"), 'the method "generateContent"', methods);
}

/** Counts the tokens of a body with `countTokens`. @throws {Skip} if the gateway does not count */
async function countTokens(client: GeminiClient, body: JsonObject): Promise<number> {
  const path = methodPath(client.path, client.context.subject.model, "countTokens");
  const answer = await client.context.ask({ path, body });
  if (answer.status === 404) throw new Skip("the gateway does not count: 404");
  expectThat(answer.status === 200, "status 200", `${answer.status}: ${answer.text}`);
  const { totalTokens } = objectOf(answer.text, "the count");
  expectThat(Number.isInteger(totalTokens) && Number(totalTokens) > 0, "totalTokens", answer.text);
  return Number(totalTokens);
}

const ANSWERS: ProtocolChecks<GeminiAnswer, GenerateAnswer> = {
  async models(client) {
    const { models } = await getModels(client, `${client.path}?pageSize=1000`);
    expectThat(Array.isArray(models), "models, a list", models);
    for (const row of models) shaped(modelForm, row, "models");
    checkModel(client, models.find((row) => Object(row).name === `models/${client.context.subject.model}`));
  },
  model: async (client) =>
    checkModel(client, await getModels(client, `${client.path}/${client.context.subject.model}`)),
  async "whole.form"(client) {
    const { text } = await client.ready();
    expectThat(text !== "", "a text", text);
  },
  async "whole.finish"(client) {
    const { finish } = await client.ready();
    expectThat(finish === "STOP", 'finishReason "STOP"', finish);
  },
  async key(client) {
    const { path, body } = client.request(client.body(READY));
    const query = `key=${encodeURIComponent(client.context.subject.key)}`;
    await client.context.good({ path: `${path}?${query}`, body, key: null });
  },
  async spelling(client) {
    const { usage } = await client.ask(READY, {
      system_instruction: { parts: [{ text: SYSTEM }] },
      generation_config: { max_output_tokens: 1024 },
    });
    const { input } = GEMINI.tokens((await client.ready()).usage);
    const seen = GEMINI.tokens(usage).input;
    expectThat(seen > input, `more than ${input} tokens of the prompt`, seen);
  },
  async parts(client) {
    await client.ask(READY, {
      contents: [
        userContent("My name is Ada."),
        { role: "model", parts: [{ text: "Hello, Ada." }] },
        userContent(READY, "Thank you."),
      ],
    });
  },
  system: async (client) => void await checkSystem(client, { systemInstruction: { parts: [{ text: SYSTEM }] } }),
  async stop(client) {
    const { text, finish } = await client.ask(HALTING, { generationConfig: { stopSequences: [HALT] } }, "stop");
    expectThat(!text.includes(HALT), `a text without ${HALT}`, text);
    expectThat(finish === "STOP", 'finishReason "STOP"', finish);
  },
  "json.stream": checkStreamedSchema,
  async count(client) {
    const contents = [userContent(READY)];
    const plain = await countTokens(client, { contents });
    for (const more of [{ systemInstruction: { parts: [{ text: SYSTEM }] } }, { tools: GEMINI.tools() }]) {
      const model = `models/${client.context.subject.model}`;
      const seen = await countTokens(client, { generateContentRequest: { model, contents, ...more } });
      expectThat(seen > plain, `more than ${plain} with ${Object.keys(more).join()}`, seen);
    }
  },
};

const STREAMS: ProtocolChecks<GeminiAnswer, GenerateAnswer> = {
  async "stream.bare"(client) {
    const { events } = await client.readyStream();
    const wrong = events.find(({ name, data }) => name !== undefined || data === DONE);
    expectThat(wrong === undefined, "events of data alone", wrong);
  },
  async "stream.content"(client) {
    const candidates = (await client.readyEvents()).flatMap(({ candidates }) => candidates ?? []);
    expectThat(candidates.length > 0, "candidates", "none");
    const withoutContent = candidates.find(({ content }) => content === undefined);
    expectThat(withoutContent === undefined, "content with parts", withoutContent);
  },
  async "stream.finish"(client) {
    const reasons = (await client.readyEvents()).map(({ candidates }) => candidates?.[0].finishReason ?? "");
    expectThat(reasons.at(-1) === "STOP", 'finishReason "STOP" in the last event', reasons.at(-1));
    expectThat(reasons.slice(0, -1).every((reason) => reason === ""), "one finishReason", reasons);
  },
  async "stream.usage"(client) {
    checkUsage((await client.readyEvents()).at(-1)?.usageMetadata);
  },
  async "stream.array"(client) {
    const { path, body } = client.request(client.body(READY, { stream: true }));
    const answer = await client.context.good({ path: path.replace("?alt=sse", ""), body });
    checkHeader(answer, "content-type", /^application\/json\b/);
    const { answers } = objectOf(`{"answers":${answer.text}}`, "a list in the answer");
    expectThat(Array.isArray(answers) && answers.every(isObject), "a list of answers", answer.text);
    const stream = { events: answers.map((item) => ({ data: JSON.stringify(item) })), comments: [], faults: [] };
    const { finish } = GEMINI.aggregate(GEMINI.readEvents(stream));
    expectThat(finish === "STOP", 'finishReason "STOP"', finish);
  },
};

const TOOLS: ProtocolChecks<GeminiAnswer, GenerateAnswer> = {
  async "tools.stream"(client) {
    const { calls, finish } = GEMINI.aggregate(await client.parallelEvents());
    if (calls.length === 0) throw new Skip("the model called nothing");
    checkCalls(calls);
    expectThat(finish === "STOP", 'finishReason "STOP"', finish);
  },
};

/** Members that request thoughts, which are not shown otherwise. */
const THINK: JsonObject = { generationConfig: { thinkingConfig: { includeThoughts: true, thinkingBudget: 1024 } } };

/** Requests an answer with thoughts, once for all checks. */
function requestThoughts(client: GeminiClient): Promise<GeminiAnswer> {
  return client.once("thoughts", () => client.ask(READY, THINK, "reasoning"));
}

/** Checks that no thought follows a text. */
function checkOrder(parts: readonly AnswerPart[]): void {
  const lastThought = parts.findLastIndex(({ thought }) => thought === true);
  if (lastThought < 0) throw new Skip("no thoughts were shown");
  const firstText = parts.findIndex(({ text, thought }) => thought !== true && text !== undefined && text !== "");
  if (firstText >= 0 && firstText < lastThought) {
    throw new Mismatch("all thoughts before the text", `a thought in part ${lastThought}`);
  }
}

const THOUGHTS: ProtocolChecks<GeminiAnswer, GenerateAnswer> = {
  async "thoughts.whole"(client) {
    const { parts, usage } = await requestThoughts(client);
    checkOrder(parts);
    expectThat((checkUsage(usage).thoughtsTokenCount ?? 0) > 0, "thoughtsTokenCount", usage);
  },
  "thoughts.stream": async (client) =>
    checkOrder(GEMINI.aggregate(await client.events(READY, THINK, "reasoning")).parts),
  async "thoughts.back"(client) {
    const { parts, history } = await requestThoughts(client);
    const isSigned = parts.some(({ thoughtSignature }) => thoughtSignature !== undefined);
    await client.ask(READY, { contents: [userContent(READY), ...history, userContent(READY)], ...THINK }, "reasoning");
    return isSigned ? undefined : "there was no signature";
  },
};

/** All checks of Gemini's protocol. */
export const GEMINI_CHECKS: Checks = withClient(GEMINI, {
  ...sharedChecks(GEMINI),
  ...HTTP_CHECKS,
  ...ANSWERS,
  ...STREAMS,
  ...TOOLS,
  ...THOUGHTS,
});
