/** Schemas as Anthropic takes them. */
import type { Prompt, Tool } from "../canonical/types.ts";
import { objectSchema } from "../canonical/object_schema.ts";
import { structuredOutputSchema } from "../canonical/structured_schema.ts";
import type { AdaptTarget } from "./target.ts";

/** Rewrites the schemas of tools and of the answer. A client of the messages protocol keeps its own. */
export function fitSchemas(prompt: Prompt, target: AdaptTarget): Prompt {
  if (target.protocol !== "messages" || prompt.protocol === "messages") return prompt;
  const { tools, format } = prompt;
  return {
    ...prompt,
    tools: tools.map((tool): Tool =>
      tool.type === "function" && tool.parameters !== undefined
        ? { ...tool, parameters: objectSchema(tool.parameters) }
        : tool
    ),
    ...(format?.type === "json_schema" && { format: { ...format, schema: structuredOutputSchema(format.schema) } }),
  };
}
