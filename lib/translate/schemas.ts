/** Schemas as vendors take them. */
import { objectSchema } from "../canonical/object_schema.ts";
import { isStrictSchema } from "../canonical/strict_schema.ts";
import { structuredOutputSchema } from "../canonical/structured_schema.ts";
import type { OutputFormat, Prompt, Tool } from "../canonical/types.ts";
import type { AdaptTarget } from "./target.ts";

/** Rewrites the schemas of tools and of the answer. In its own protocol a client keeps its schemas as they are. */
export function fitSchemas(prompt: Prompt, target: AdaptTarget): Prompt {
  if (prompt.protocol === target.protocol) return prompt;
  const { tools, format } = prompt;
  return {
    ...prompt,
    tools: tools.map((tool): Tool =>
      tool.type === "function" && tool.parameters !== undefined && wantsObject(prompt, target)
        ? { ...tool, parameters: objectSchema(tool.parameters) }
        : tool
    ),
    ...(format?.type === "json_schema" && { format: fitFormat(format, prompt, target) }),
  };
}

/**
 * OpenAI and Anthropic refuse arguments that are no object, or have branches at the top of their schema. Between the two
 * protocols of OpenAI nothing changes.
 */
function wantsObject({ protocol }: Prompt, target: AdaptTarget): boolean {
  return target.protocol === "messages" || (target.protocol !== "gemini" && protocol === "messages");
}

/** Anthropic always keeps to the schema; elsewhere that has to be said, and can be where the schema is of the strict kind. */
function fitFormat(
  format: Extract<OutputFormat, { type: "json_schema" }>,
  { protocol }: Prompt,
  target: AdaptTarget,
): OutputFormat {
  if (target.protocol === "messages") return { ...format, schema: structuredOutputSchema(format.schema) };
  const strict = format.strict ?? (protocol === "messages" && isStrictSchema(format.schema) ? true : undefined);
  return { ...format, ...(strict !== undefined && { strict }) };
}
