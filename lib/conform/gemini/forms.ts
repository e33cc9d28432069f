/** Gemini's protocol for the suite: schemas of answers, and the bodies of requests. */
import { z } from "zod";
import type { Json, JsonObject } from "../../json/mod.ts";
import { expectThat, shaped } from "../check.ts";
import type { PlainAnswer, ProtocolForm } from "../protocol_client.ts";
import { PERSON, PICTURE, SHORT, TOOLS } from "../prompts.ts";
import { bodiesOf, objectOf } from "../sse.ts";

const count = z.number().int().min(0);

const usageForm = z.object({
  promptTokenCount: count.min(1),
  candidatesTokenCount: count.nullish(),
  thoughtsTokenCount: count.nullish(),
  toolUsePromptTokenCount: count.nullish(),
  cachedContentTokenCount: count.nullish(),
  totalTokenCount: count,
});

const partForm = z.looseObject({
  text: z.string().optional(),
  thought: z.boolean().optional(),
  thoughtSignature: z.base64().optional(),
  functionCall: z.looseObject({
    id: z.string().min(1).optional(),
    name: z.string().min(1),
    args: z.record(z.string(), z.unknown()).optional(),
  }).optional(),
});

/** A part of an answer. */
export type AnswerPart = z.output<typeof partForm> & JsonObject;

const contentForm = z.looseObject({ role: z.literal("model"), parts: z.array(partForm).min(1) });

const answerForm = z.looseObject({
  candidates: z.tuple([z.looseObject({
    content: contentForm.optional(),
    finishReason: z.string().optional(),
    index: z.literal(0).optional(),
  })]).optional(),
  modelVersion: z.string().min(1),
  responseId: z.string().min(1),
  usageMetadata: z.unknown().optional(),
});

/** The body of an answer, or an event of a stream. */
export type GenerateAnswer = z.output<typeof answerForm> & JsonObject;

/** An answer that was not streamed, or was aggregated from a stream. */
export interface GeminiAnswer extends PlainAnswer {
  parts: AnswerPart[];
}

/** Aggregates the body of an answer, or all events of a stream. */
function readAnswers(answers: readonly GenerateAnswer[]): GeminiAnswer {
  const candidates = answers.flatMap(({ candidates }) => candidates ?? []);
  const parts = candidates.flatMap(({ content }) => content?.parts ?? []) as AnswerPart[];
  const usage = answers.findLast(({ usageMetadata }) => usageMetadata !== undefined)?.usageMetadata;
  return {
    body: answers[0] ?? {},
    parts,
    text: parts.map(({ text, thought }) => thought === true ? "" : text ?? "").join(""),
    // Google's models before Gemini 3 give calls no ids.
    calls: parts.flatMap(({ functionCall: call }, index) =>
      call === undefined
        ? []
        : [{ id: call.id ?? `part ${index}`, name: call.name, arguments: JSON.stringify(call.args ?? {}) }]
    ),
    finish: candidates.findLast(({ finishReason }) => finishReason !== undefined)?.finishReason ?? null,
    usage,
    history: [{ role: "model", parts: parts as Json[] }],
    hasReasoned: Number(Object(usage).thoughtsTokenCount ?? 0) > 0,
  };
}

function readAnswer(value: JsonObject, where: string): GenerateAnswer {
  return shaped(answerForm, value, where) as GenerateAnswer;
}

/** Validates a usage and the sums within it. @throws {Mismatch} if something is wrong */
export function checkUsage(value: unknown): z.output<typeof usageForm> {
  const usage = shaped(usageForm, value, "usageMetadata");
  const { input, output } = totalsOf(usage);
  expectThat(usage.totalTokenCount === input + output, "the total as the sum of its counts", usage);
  expectThat((usage.cachedContentTokenCount ?? 0) <= input, "cached tokens among those of the prompt", usage);
  return usage;
}

function totalsOf(usage: z.output<typeof usageForm>): { input: number; output: number } {
  return {
    input: usage.promptTokenCount + (usage.toolUsePromptTokenCount ?? 0),
    output: (usage.candidatesTokenCount ?? 0) + (usage.thoughtsTokenCount ?? 0),
  };
}

/** Returns the message of a user. */
export function userContent(...texts: string[]): JsonObject {
  return { role: "user", parts: texts.map((text) => ({ text })) };
}

function toolChoice(functionCallingConfig: JsonObject): JsonObject {
  return { toolConfig: { functionCallingConfig } };
}

/** Returns the path of a method of a model. */
export function methodPath(path: string, model: string, method: string): string {
  return `${path}/${model}:${method}`;
}

/** Gemini's protocol. Bodies have the members `model` and `stream`, which `address` moves to the path. */
export const GEMINI: ProtocolForm<GeminiAnswer, GenerateAnswer> = {
  part: "gemini",
  errors: "google",
  address: (path, { model, stream, ...body }, subject) => ({
    path: methodPath(
      path,
      typeof model === "string" ? model : subject,
      stream === true ? "streamGenerateContent?alt=sse" : "generateContent",
    ),
    body,
  }),
  body: (model, words) => ({ model, contents: [userContent(words)] }),
  incomplete: (model) => ({ model }),
  known: {
    safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_ONLY_HIGH" }],
    generationConfig: { candidateCount: 1, responseModalities: ["TEXT"] },
  },
  streaming: { stream: true },
  readWhole: ({ text }) => readAnswers([readAnswer(objectOf(text, "the answer"), "the answer")]),
  readEvents: (stream) => bodiesOf(stream).map((body, index) => readAnswer(body, `event ${index}`)),
  aggregate: readAnswers,
  tokens: (usage) => totalsOf(checkUsage(usage)),
  limit: () => ({ generationConfig: { maxOutputTokens: SHORT } }),
  cutFinish: "MAX_TOKENS",
  tools: (count = TOOLS.length) => [{
    functionDeclarations: TOOLS.slice(0, count).map(({ name, description, schema }) => ({
      name,
      description,
      parametersJsonSchema: schema,
    })),
  }],
  choices: {
    forced: toolChoice({ mode: "ANY", allowedFunctionNames: ["get_weather"] }),
    required: toolChoice({ mode: "ANY" }),
    none: toolChoice({ mode: "NONE" }),
  },
  parallel: {},
  withResults(words, { history, calls }, results) {
    const parts = results.map(({ id, output, isError }) => {
      const call = calls.find((call) => call.id === id);
      return {
        functionResponse: {
          ...(!id.startsWith("part ") && { id }),
          name: call?.name ?? "",
          response: isError ? { error: output } : { output },
        },
      };
    });
    return { contents: [userContent(words), ...history, { role: "user", parts }] };
  },
  withImage(words) {
    const inlineData = { mimeType: "image/png", data: PICTURE };
    return { contents: [{ role: "user", parts: [{ inlineData }, { text: words }] }] };
  },
  schema: { generationConfig: { responseMimeType: "application/json", responseJsonSchema: PERSON } },
};
