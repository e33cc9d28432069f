/** Schema of the `messages` of a chat request. */
import { z } from "zod";
import { calledNameField, callIdField, COUNTS, expecting } from "../fields.ts";
import { cacheField } from "../canonical/cache_mark.ts";

const textPart = z.looseObject({ type: z.literal("text"), text: z.string(), cache_control: cacheField });
const imagePart = z.looseObject({
  type: z.literal("image_url"),
  image_url: z.looseObject({
    url: z.string().min(1).describe("An https: URL or a data: URL"),
    detail: z.enum(["auto", "low", "high", "original"]).nullish(),
  }),
  cache_control: cacheField,
});
const audioPart = z.looseObject({
  type: z.literal("input_audio"),
  input_audio: z.looseObject({ data: z.string(), format: z.string().min(1) }),
  cache_control: cacheField,
});
const filePart = z.looseObject({
  type: z.literal("file"),
  file: z.looseObject({
    filename: z.string().nullish(),
    file_data: z.string().min(1).nullish().describe("A data: URL"),
    file_id: z.string().nullish(),
  }),
  cache_control: cacheField,
});
/** Mistral's reasoning models answer in parts of these types, which clients send back. */
const thinkingPart = z.looseObject({
  type: z.literal("thinking"),
  thinking: z.union([z.string(), z.array(z.looseObject({ type: z.string() })).max(COUNTS.parts)]),
});
const referencePart = z.looseObject({ type: z.literal("reference") });
const refusalPart = z.looseObject({ type: z.literal("refusal"), refusal: z.string(), cache_control: cacheField });

const textParts = z.array(textPart).max(COUNTS.parts);
const userParts = z.array(
  z.discriminatedUnion(
    "type",
    [textPart, imagePart, audioPart, filePart],
    expecting("a part of type text, image_url, input_audio or file"),
  ),
).max(COUNTS.parts);
const assistantParts = z.array(
  z.discriminatedUnion(
    "type",
    [textPart, refusalPart, thinkingPart, referencePart],
    expecting("a part of type text or refusal"),
  ),
).max(COUNTS.parts);
const toolParts = z.array(
  z.discriminatedUnion(
    "type",
    [textPart, imagePart, filePart],
    expecting("a part of type text, image_url or file"),
  ),
).max(COUNTS.parts);

const contentError = { error: "Expected a string or an array of content parts" };

const toolCall = z.discriminatedUnion("type", [
  z.looseObject({
    id: callIdField,
    type: z.literal("function"),
    function: z.looseObject({ name: calledNameField, arguments: z.string().describe("Arguments as JSON text") }),
  }),
  z.looseObject({
    id: callIdField,
    type: z.literal("custom"),
    custom: z.looseObject({ name: calledNameField, input: z.string() }),
  }),
], expecting("a call of type function or custom"));

const name = z.string().nullish();

const systemMessage = z.looseObject({
  role: z.enum(["system", "developer"]),
  content: z.union([z.string(), textParts], contentError),
  name,
  cache_control: cacheField,
});
const userMessage = z.looseObject({
  role: z.literal("user"),
  content: z.union([z.string(), userParts], contentError),
  name,
  cache_control: cacheField,
});
const assistantMessage = z.looseObject({
  role: z.literal("assistant"),
  content: z.union([z.string(), assistantParts], contentError).nullish(),
  refusal: z.string().nullish(),
  name,
  audio: z.looseObject({ id: z.string() }).nullish(),
  tool_calls: z.array(toolCall).max(COUNTS.parts).nullish(),
  function_call: z.looseObject({ name: calledNameField, arguments: z.string() }).nullish().describe(
    "Deprecated: use `tool_calls`",
  ),
  reasoning_details: z.array(z.looseObject({ type: z.string() })).max(COUNTS.parts).nullish()
    .describe("Reasoning of this message, returned unchanged with its signatures. An extension"),
  thinking_blocks: z.array(z.looseObject({ type: z.string() })).max(COUNTS.parts).nullish()
    .describe("Reasoning as thinking blocks of the messages protocol. An extension"),
  reasoning_content: z.string().nullish().describe("Reasoning as text. An extension"),
  reasoning: z.string().nullish().describe("Reasoning as text. An extension"),
  cache_control: cacheField,
});
const toolMessage = z.looseObject({
  role: z.literal("tool"),
  tool_call_id: callIdField,
  content: z.union([z.string(), toolParts], contentError),
  cache_control: cacheField,
});
const functionMessage = z.looseObject({
  role: z.literal("function"),
  name: calledNameField,
  content: z.string().nullable(),
  cache_control: cacheField,
});

/** The messages of the conversation. */
export const messagesField = z.array(
  z.discriminatedUnion(
    "role",
    [systemMessage, userMessage, assistantMessage, toolMessage, functionMessage],
    expecting("a role of system, developer, user, assistant, tool or function"),
  ),
).min(1).max(COUNTS.messages);
