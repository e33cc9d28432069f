/** Schemas of input items and their content parts. */
import { z } from "zod";
import { calledNameField, callIdField, COUNTS, objectField, unknownType } from "../fields.ts";
import { cacheField } from "../canonical/cache_mark.ts";
import { RESPONSES_ITEMS } from "../canonical/vendor_blocks.ts";
import { toolsField } from "./tool_schema.ts";

const textParts = (["input_text", "output_text", "text"] as const).map((type) =>
  z.looseObject({
    type: z.literal(type),
    text: z.string(),
    annotations: z.array(objectField).nullish(),
    cache_control: cacheField,
  })
);

// The schema accepts file ids, so that the reader can refuse them by their path. They belong to one vendor's account.
const part = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("refusal"), refusal: z.string() }),
  z.looseObject({
    type: z.literal("input_image"),
    image_url: z.string().min(1).nullish().describe("An https: URL or a data: URL"),
    file_id: z.string().nullish(),
    detail: z.enum(["low", "high", "auto", "original"]).nullish(),
    cache_control: cacheField,
  }),
  z.looseObject({
    type: z.literal("input_file"),
    filename: z.string().nullish(),
    file_data: z.string().min(1).nullish().describe("A data: URL"),
    file_url: z.string().min(1).nullish(),
    file_id: z.string().nullish(),
    cache_control: cacheField,
  }),
  z.looseObject({ type: z.literal("input_audio"), input_audio: objectField }),
  ...textParts,
], unknownType("content part"));

const contentField = z.union([z.string(), z.array(part).max(COUNTS.parts)], {
  error: "Expected a string or content parts",
});

const messageItem = z.looseObject({
  // An item with a role and without a type is a message.
  type: z.literal("message").optional(),
  role: z.enum(["user", "assistant", "system", "developer"]),
  content: contentField,
  // Official clients omit these in messages of the model, although the API reference requires them.
  id: z.string().nullish(),
  status: z.string().nullish(),
  phase: z.string().nullish(),
});

const linkField = callIdField.describe("Id that links a tool call to its output");
const callMembers = { call_id: linkField, name: calledNameField, namespace: z.string().nullish() };

const reasoningItem = z.looseObject({
  type: z.literal("reasoning"),
  id: z.string().nullish(),
  summary: z.array(z.looseObject({ type: z.literal("summary_text"), text: z.string() })).max(COUNTS.parts).nullish(),
  content: z.array(z.looseObject({ type: z.enum(["reasoning_text", "text"]), text: z.string() })).max(COUNTS.parts)
    .nullish(),
  encrypted_content: z.string().nullish().describe("Encrypted reasoning: return it unchanged"),
});

const vendorSpecificTypes = Object.keys(RESPONSES_ITEMS) as (keyof typeof RESPONSES_ITEMS)[];

const item = z.discriminatedUnion("type", [
  messageItem,
  z.looseObject({
    type: z.literal("function_call"),
    ...callMembers,
    arguments: z.string().describe("Arguments as JSON text"),
  }),
  z.looseObject({ type: z.literal("custom_tool_call"), ...callMembers, input: z.string() }),
  // An output without a call, which OpenAI's types allow, names the tool instead.
  z.looseObject({ type: z.literal("function_call_output"), call_id: linkField.nullish(), output: contentField }),
  z.looseObject({ type: z.literal("custom_tool_call_output"), call_id: linkField, output: contentField }),
  reasoningItem,
  z.looseObject({ type: z.literal("additional_tools"), role: z.string().nullish(), tools: toolsField }),
  // The schema accepts it, so that the reader can explain its refusal.
  z.looseObject({ type: z.literal("item_reference") }),
  z.looseObject({ type: z.enum(vendorSpecificTypes) }),
], unknownType("item"));

/** The type of members that the short form of a reference does not have. */
const absent = z.never().optional();
/** The short form of a reference. The schema accepts it, so that the reader can explain its refusal. */
const bareReference = z.looseObject({ id: z.string(), type: absent, role: absent, content: absent });

const itemsField = z.array(z.union([item, bareReference], { error: "Expected an item" })).max(COUNTS.messages);

/** The conversation: a text of the user, or items. */
export const inputField: z.ZodType = z.union([z.string(), itemsField.min(1)], {
  error: "Expected a string or an array of items",
}).describe("The conversation so far, oldest item first. A string is a single user message");

/** The instructions: a system text, or messages. */
export const instructionsField: z.ZodType = z.union([z.string(), itemsField], {
  error: "Expected a string or an array of messages",
}).nullish().describe("System instructions");
