/** Schemas of the tools and the tool choice of a chat request. */
import { z } from "zod";
import { COUNTS, objectField, toolNameField } from "../fields.ts";
import { cacheField } from "../canonical/cache_mark.ts";

const functionTool = z.looseObject({
  type: z.literal("function"),
  function: z.looseObject({
    name: toolNameField,
    description: z.string().nullish(),
    parameters: objectField.nullish().describe("JSON Schema of the arguments. If omitted, there are none"),
    strict: z.boolean().nullish(),
  }),
  cache_control: cacheField,
});

const customTool = z.looseObject({
  type: z.literal("custom"),
  custom: z.looseObject({
    name: toolNameField,
    description: z.string().nullish(),
    format: z.discriminatedUnion("type", [
      z.looseObject({ type: z.literal("text") }),
      z.looseObject({
        type: z.literal("grammar"),
        grammar: z.looseObject({ syntax: z.enum(["lark", "regex"]), definition: z.string() }),
      }),
    ]).nullish(),
  }),
  cache_control: cacheField,
});

/**
 * A tool that runs at a vendor. The check of the type aborts, so that an invalid function is reported as a function.
 */
const hostedTool = z.looseObject({
  type: z.string().min(1).regex(/^(?!(?:function|custom)$)/, { abort: true, error: "Expected a type of tool" }),
});

/** Tools that the model may call. */
export const toolsField = z.array(z.union([z.discriminatedUnion("type", [functionTool, customTool]), hostedTool]))
  .max(COUNTS.tools);

/** The functions that the model may call, in the deprecated predecessor of `tools`. */
export const functionsField = z.array(z.looseObject({
  name: toolNameField,
  description: z.string().nullish(),
  parameters: objectField.nullish(),
})).min(1).max(128);

const namedFunction = z.looseObject({
  type: z.literal("function"),
  function: z.looseObject({ name: toolNameField }),
});
const namedCustom = z.looseObject({ type: z.literal("custom"), custom: z.looseObject({ name: toolNameField }) });

/** The tools that the model may or must call. */
export const toolChoiceField = z.union([
  z.enum(["none", "auto", "required"]),
  z.discriminatedUnion("type", [
    namedFunction,
    namedCustom,
    z.looseObject({
      type: z.literal("allowed_tools"),
      allowed_tools: z.looseObject({
        mode: z.enum(["auto", "required"]),
        tools: z.array(z.discriminatedUnion("type", [namedFunction, namedCustom])).min(1).max(COUNTS.tools),
      }),
    }),
  ]),
], { error: "Expected none, auto, required or an object of type function, custom or allowed_tools" });

/** The choice of a function, in the deprecated predecessor of `tool_choice`. */
export const functionCallField = z.union([
  z.enum(["none", "auto"]),
  z.looseObject({ name: toolNameField }),
], { error: "Expected none, auto or an object with a name" });
