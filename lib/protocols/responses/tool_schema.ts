/** Schemas of the tools and the tool choice of a responses request. */
import { z } from "zod";
import { COUNTS, objectField, toolNameField } from "../fields.ts";
import { cacheField } from "../canonical/cache_mark.ts";

const functionTool = z.looseObject({
  type: z.literal("function"),
  name: toolNameField,
  description: z.string().nullish(),
  parameters: objectField.nullish().describe("JSON Schema of the arguments"),
  strict: z.boolean().nullish(),
  cache_control: cacheField,
});

const customTool = z.looseObject({
  type: z.literal("custom"),
  name: toolNameField,
  description: z.string().nullish(),
  format: z.discriminatedUnion("type", [
    z.looseObject({ type: z.literal("text") }),
    z.looseObject({ type: z.literal("grammar"), syntax: z.string(), definition: z.string() }),
  ]).nullish().describe("Format of the free-form input"),
  cache_control: cacheField,
});

/** A tool that runs at the vendor, of any type. */
const hostedTool = z.looseObject({
  type: z.string().max(128).regex(/^(?!(?:function|custom|namespace)$)[A-Za-z0-9_:.-]+$/, {
    error: "Expected a tool type",
    // If the check did not abort, the error of this option would be reported.
    abort: true,
  }),
});

const namespaceTool = z.looseObject({
  type: z.literal("namespace"),
  name: toolNameField,
  description: z.string().nullish(),
  tools: z.array(z.union([z.discriminatedUnion("type", [functionTool, customTool]), hostedTool])).min(1)
    .max(COUNTS.tools),
});

/** A list of tools. */
export const toolsField: z.ZodType = z.array(
  z.union([z.discriminatedUnion("type", [functionTool, customTool, namespaceTool]), hostedTool], {
    error: "Expected a tool",
  }),
).max(COUNTS.tools);

const allowedTool = z.looseObject({ type: z.string(), name: z.string().nullish() });

/** The tools that the model may or must call. */
export const toolChoiceField: z.ZodType = z.union([
  z.enum(["auto", "none", "required"]),
  z.discriminatedUnion("type", [
    z.looseObject({ type: z.literal("function"), name: z.string().min(1) }),
    z.looseObject({ type: z.literal("custom"), name: z.string().min(1) }),
    z.looseObject({
      type: z.literal("allowed_tools"),
      mode: z.enum(["auto", "required"]),
      tools: z.array(allowedTool).min(1).max(COUNTS.tools),
    }),
  ]),
  z.looseObject({
    type: z.string().max(128).regex(/^(?!(?:function|custom|allowed_tools)$)[A-Za-z0-9_:.-]+$/, {
      error: "Expected a kind of tool choice",
      abort: true,
    }),
  }),
], { error: 'Expected "auto", "none", "required" or an object that names a tool' });
