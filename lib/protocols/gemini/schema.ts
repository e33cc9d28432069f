/**
 * Schema of the bodies of `generateContent` and `streamGenerateContent`, with the model and the streaming mode of the
 * URL as members. It has the types and ranges of Google's API reference, https://ai.google.dev/api/generate-content.
 * Limits of a model are checked in `lib/request/rules.ts`.
 */
import { z } from "zod";
import {
  calledNameField,
  callIdField,
  COUNTS,
  fallbacksField,
  objectField,
  providerField,
  seedField,
  stopText,
  tokensField,
  toolNameField,
} from "../fields.ts";

const mediaTypeField = z.string().max(128).regex(/^[A-Za-z0-9.+-]+\/[A-Za-z0-9.+-]+(?:\s*;.*)?$/, {
  error: "Expected a media type such as image/png",
});

const inlineDataField = z.looseObject({
  mimeType: mediaTypeField,
  data: z.string().describe("Base64"),
  displayName: z.string().nullish(),
}).nullish();

const fileDataField = z.looseObject({
  mimeType: mediaTypeField.nullish(),
  fileUri: z.string().min(1),
  displayName: z.string().nullish(),
}).nullish();

const callField = z.looseObject({
  id: callIdField.nullish(),
  name: calledNameField,
  args: objectField.nullish(),
});

const resultField = z.looseObject({
  id: callIdField.nullish().describe("Id of the call. Default: the first unanswered call of this function"),
  name: calledNameField,
  response: objectField.nullish().describe("The result, in `output` or `error`, or as any other object"),
  parts: z.array(z.looseObject({ inlineData: inlineDataField, fileData: fileDataField })).max(COUNTS.parts).nullish(),
});

const partField = z.looseObject({
  text: z.string().nullish(),
  thought: z.boolean().nullish(),
  thoughtSignature: z.string().nullish(),
  inlineData: inlineDataField,
  fileData: fileDataField,
  functionCall: callField.nullish(),
  functionResponse: resultField.nullish(),
  executableCode: objectField.nullish(),
  codeExecutionResult: objectField.nullish(),
  toolCall: objectField.nullish(),
  toolResponse: objectField.nullish(),
});

const contentField = z.looseObject({
  role: z.enum(["user", "model", "function"], { error: 'Expected "user" or "model"' }).nullish(),
  parts: z.array(partField).max(COUNTS.parts).nullish(),
});

const declarationField = z.looseObject({
  name: toolNameField,
  description: z.string().nullish(),
  parameters: objectField.nullish().describe("Schema of the arguments, in Google's subset of OpenAPI"),
  parametersJsonSchema: objectField.nullish().describe("JSON Schema of the arguments"),
});

const toolField = z.looseObject({
  functionDeclarations: z.array(declarationField).max(COUNTS.tools).nullish(),
});

const toolConfigField = z.looseObject({
  functionCallingConfig: z.looseObject({
    mode: z.string().regex(/^(?:mode_unspecified|auto|any|none|validated)$/i, {
      error: 'Expected "AUTO", "ANY", "NONE" or "VALIDATED"',
    }).nullish(),
    allowedFunctionNames: z.array(z.string().min(1)).max(COUNTS.tools).nullish(),
  }).nullish(),
});

const thinkingField = z.looseObject({
  includeThoughts: z.boolean().nullish().describe("Whether to return summaries of the model's thoughts"),
  thinkingBudget: z.number().int().min(-1).nullish().describe(
    "Maximum number of tokens for thinking. 0 turns thinking off; -1 lets the model decide",
  ),
  thinkingLevel: z.string().regex(/^(?:thinking_level_unspecified|minimal|low|medium|high)$/i, {
    error: 'Expected "MINIMAL", "LOW", "MEDIUM" or "HIGH"',
  }).nullish(),
});

const generationField = z.looseObject({
  stopSequences: z.array(stopText).max(COUNTS.stops).nullish(),
  responseMimeType: z.string().max(128).nullish().describe('"application/json" for an answer in JSON'),
  responseSchema: objectField.nullish().describe("Schema of the answer, in Google's subset of OpenAPI"),
  responseJsonSchema: objectField.nullish().describe("JSON Schema of the answer"),
  responseModalities: z.array(z.string()).nullish().describe('Only "TEXT" is supported'),
  candidateCount: z.number().int().min(1).max(8).nullish(),
  maxOutputTokens: tokensField.nullish().describe("Maximum number of tokens in the answer, including thoughts"),
  temperature: z.number().min(0).max(2).nullish(),
  topP: z.number().min(0).max(1).nullish(),
  topK: z.number().int().min(0).nullish(),
  seed: seedField.nullish(),
  presencePenalty: z.number().min(-2).max(2).nullish(),
  frequencyPenalty: z.number().min(-2).max(2).nullish(),
  responseLogprobs: z.boolean().nullish(),
  logprobs: z.number().int().min(0).max(20).nullish(),
  thinkingConfig: thinkingField.nullish(),
});

/** The body of `POST /v1beta/models/{model}:generateContent`. */
export const schema: z.ZodObject<z.ZodRawShape, z.core.$loose> = z.looseObject({
  model: z.string().min(1).max(256).describe("Model id, `<vendor>/<model_name>`"),
  // Google ignores the role here. Many clients send "system".
  systemInstruction: contentField.extend({ role: z.string().max(64).nullish() }).nullish(),
  tools: z.array(toolField).max(COUNTS.tools).nullish(),
  toolConfig: toolConfigField.nullish(),
  generationConfig: generationField.nullish(),
  safetySettings: z.array(objectField).nullish(),
  cachedContent: z.string().nullish(),
  labels: objectField.nullish(),
  serviceTier: z.string().max(64).nullish(),
  store: z.boolean().nullish(),
  continuationToken: z.string().nullish(),
  provider: providerField.nullish().describe("Routing preferences"),
  models: fallbacksField.nullish().describe("Models to try if the first one fails"),
  contents: z.array(contentField).min(1).max(COUNTS.messages),
  stream: z.boolean().nullish(),
});
