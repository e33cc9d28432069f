/** Schemas of messages and their content blocks. */
import { MESSAGES_RECORDS } from "../canonical/vendor_blocks.ts";
import { z } from "zod";
import { cacheField } from "../canonical/cache_mark.ts";
import { calledNameField, callIdField, COUNTS, objectField, unknownType } from "../fields.ts";

/**
 * Block types that only this protocol has: records of tools run by the vendor, search results, and blocks of beta
 * features.
 */
export const VENDOR_SPECIFIC_TYPES = [
  ...MESSAGES_RECORDS,
  "search_result",
  "tool_reference",
  "browser_state",
  "compaction",
  "tool_addition",
  "tool_removal",
] as const;

const mediaTypeField = z.string().max(128).regex(/^[A-Za-z0-9.+-]+\/[A-Za-z0-9.+-]+$/, {
  error: "Expected a media type such as application/pdf",
});
const urlField = z.string().min(1);
// The schema accepts it, so that the reader can refuse it by its file id, which belongs to one vendor's account.
const fileSource = z.looseObject({ type: z.literal("file"), file_id: z.string() });

const textBlock = z.looseObject({
  type: z.literal("text"),
  text: z.string(),
  cache_control: cacheField,
  citations: z.array(objectField).nullish(),
});

const imageBlock = z.looseObject({
  type: z.literal("image"),
  source: z.discriminatedUnion("type", [
    z.looseObject({
      type: z.literal("base64"),
      media_type: z.string().max(128).regex(/^image\/[a-z0-9.+-]+$/i, { error: "Expected an image media type" }),
      data: z.string(),
    }),
    z.looseObject({ type: z.literal("url"), url: urlField }),
    fileSource,
  ], unknownType("image source")),
  cache_control: cacheField,
});

const documentBlock = z.looseObject({
  type: z.literal("document"),
  source: z.discriminatedUnion("type", [
    z.looseObject({ type: z.literal("base64"), media_type: mediaTypeField, data: z.string() }),
    z.looseObject({ type: z.literal("text"), media_type: z.literal("text/plain").nullish(), data: z.string() }),
    z.looseObject({ type: z.literal("url"), url: urlField }),
    z.looseObject({
      type: z.literal("content"),
      content: z.union([
        z.string(),
        z.array(z.discriminatedUnion("type", [textBlock, imageBlock], unknownType("content block"))).max(COUNTS.parts),
      ]),
    }),
    fileSource,
  ], unknownType("document source")),
  title: z.string().nullish(),
  context: z.string().nullish(),
  citations: z.looseObject({ enabled: z.boolean().nullish() }).nullish(),
  cache_control: cacheField,
});

const vendorSpecificBlock = z.looseObject({ type: z.enum(VENDOR_SPECIFIC_TYPES), cache_control: cacheField });
const uploadBlock = z.looseObject({ type: z.literal("container_upload"), file_id: z.string() });

const toolResultBlock = z.looseObject({
  type: z.literal("tool_result"),
  tool_use_id: callIdField,
  content: contentField(
    z.discriminatedUnion(
      "type",
      [textBlock, imageBlock, documentBlock, vendorSpecificBlock],
      unknownType("content block"),
    ),
  ).nullish(),
  is_error: z.boolean().nullish(),
  cache_control: cacheField,
});

const toolUseBlock = z.looseObject({
  type: z.literal("tool_use"),
  id: callIdField,
  name: calledNameField,
  input: objectField,
  cache_control: cacheField,
});

/** The signature is optional: clients that received none in a stream send the block back without one. */
const thinkingBlock = z.looseObject({
  type: z.literal("thinking"),
  thinking: z.string(),
  signature: z.string().nullish(),
});
const redactedBlock = z.looseObject({ type: z.literal("redacted_thinking"), data: z.string() });

const userBlock = z.discriminatedUnion(
  "type",
  [textBlock, imageBlock, documentBlock, toolResultBlock, uploadBlock, vendorSpecificBlock],
  unknownType("content block"),
);
const assistantBlock = z.discriminatedUnion(
  "type",
  [textBlock, imageBlock, documentBlock, toolUseBlock, thinkingBlock, redactedBlock, uploadBlock, vendorSpecificBlock],
  unknownType("content block"),
);
const systemBlock = z.discriminatedUnion(
  "type",
  [textBlock, z.looseObject({ type: z.enum(["tool_addition", "tool_removal"]) })],
  unknownType("content block"),
);

/** The system prompt: a string or text blocks. */
export const systemField: z.ZodType = contentField(
  z.discriminatedUnion("type", [textBlock], unknownType("content block")),
).nullish().describe("System prompt");

/** The messages of the conversation. */
export const messagesField: z.ZodType = z.array(
  z.discriminatedUnion("role", [
    z.looseObject({ role: z.literal("user"), content: contentField(userBlock) }),
    z.looseObject({ role: z.literal("assistant"), content: contentField(assistantBlock) }),
    z.looseObject({ role: z.literal("system"), content: contentField(systemBlock) }),
  ], {
    error: ({ code }) => code === "invalid_union" ? 'Input should be "user", "assistant" or "system"' : undefined,
  }),
).min(1).max(COUNTS.messages).describe("The conversation so far, oldest message first");

/** Returns the schema of content: blocks, or a string, which means one text block. */
function contentField<T extends z.ZodType>(block: T): z.ZodUnion<[z.ZodString, z.ZodArray<T>]> {
  return z.union([z.string(), z.array(block).max(COUNTS.parts)], {
    error: ({ input }) =>
      Array.isArray(input) ? `Expected at most ${COUNTS.parts} content blocks` : "Expected a string or content blocks",
  });
}
