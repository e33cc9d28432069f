/** Rewrites the JSON Schemas of tools and answers for the target's vendor. */
import { objectSchema } from "./object_schema.ts";
import { needsOpenObjects, structuredOutputSchema } from "../canonical/structured_schema.ts";
import type { OutputFormat, Prompt, Tool } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import { listOf } from "../members.ts";
import type { AdaptTarget } from "../upstream_codec.ts";
import { wrapSchema } from "./json_frame.ts";

/** Argument names that Anthropic accepts. */
const ARGUMENT_NAME = /^[A-Za-z0-9_.-]{1,64}$/;

/**
 * Rewrites the schemas of tools and of the answer, in steps. Client and target have different protocols.
 * @throws {GatewayError} `invalid`, for argument names that the vendor refuses
 */
export function* fitSchemas(prompt: Prompt, target: AdaptTarget): Generator<void, Prompt> {
  const { format } = prompt;
  const tools: Tool[] = [];
  for (const [index, tool] of prompt.tools.entries()) {
    if (tool.type !== "function" || tool.parameters === undefined || !requiresObject(prompt, target)) {
      tools.push(tool);
      continue;
    }
    const parameters = objectSchema(tool.parameters);
    if (target.protocol === "messages") checkArgumentNames(parameters, { tool: tool.name, index });
    tools.push({ ...tool, parameters });
    yield;
  }
  return {
    ...prompt,
    tools,
    ...(format?.type === "json_schema" && { format: yield* fitFormat(format, prompt, target) }),
  };
}

/**
 * Asks for one of the texts in words, at the end of the system prompt, because only Gemini has this format. The members
 * that ask for it are dropped.
 */
export function askForChoice({ choices, ...prompt }: Prompt): Prompt {
  const { messages } = prompt;
  const text = "Answer with one text of this list, without quotation marks, and with nothing else:\n" +
    JSON.stringify(choices);
  const end = messages.findIndex(({ role }) => role !== "system");
  const last = end < 1 ? undefined : messages[end - 1];
  const block = last?.blocks.at(-1);
  if (last === undefined || block?.type !== "text") {
    return { ...prompt, messages: [{ role: "system", blocks: [{ type: "text", text }] }, ...messages] };
  }
  // Some servers accept only one system message, and only a string as its content.
  const blocks = [...last.blocks.slice(0, -1), { ...block, text: `${block.text}\n\n${text}` }];
  return { ...prompt, messages: messages.with(end - 1, { ...last, blocks }) };
}

/**
 * Returns whether schemas of tools are rewritten. OpenAI and Anthropic refuse tool arguments that are not objects, or
 * have branches at the top. Between OpenAI's two protocols nothing changes.
 */
function requiresObject({ protocol }: Prompt, target: AdaptTarget): boolean {
  return target.protocol === "messages" ||
    (target.protocol !== "gemini" && protocol !== "chat" && protocol !== "responses");
}

/** Fits the answer's schema. Anthropic always enforces it; OpenAI does with `strict`, which is set if possible. */
function* fitFormat(
  format: Extract<OutputFormat, { type: "json_schema" }>,
  prompt: Prompt,
  target: AdaptTarget,
): Generator<void, OutputFormat> {
  if (target.protocol === "messages") {
    if (yield* needsOpenObjects(format.schema)) return { ...format, inWords: true };
    return { ...format, schema: yield* structuredOutputSchema(format.schema) };
  }
  // OpenAI refuses any other type at the top.
  const isOther = requiresObject(prompt, target) && format.schema.type !== "object";
  const fitted = isOther ? { ...format, schema: wrapSchema(format.schema), isWrapped: true as const } : format;
  const strict = format.strict ?? (prompt.protocol === "messages" && isStrictSchema(fitted.schema) ? true : undefined);
  return { ...fitted, ...(strict !== undefined && { strict }) };
}

/** Checks argument names, because the vendor would refuse the whole request without naming the tool. */
function checkArgumentNames({ properties }: JsonObject, { tool, index }: { tool: string; index: number }): void {
  const name = isObject(properties) ? Object.keys(properties).find((name) => !ARGUMENT_NAME.test(name)) : undefined;
  if (name === undefined) return;
  const quotedName = JSON.stringify(name.slice(0, 80));
  throw new GatewayError(
    "invalid",
    `Cannot send tool "${tool}" to this model: its argument ${quotedName} must have a name of 1 to 64 letters, digits, _ . or -`,
    { param: `tools[${index}]` },
  );
}

/** Keywords that every version of the strict mode accepts. */
const KEYWORDS: ReadonlySet<string> = new Set(
  `type properties required additionalProperties items anyOf enum const $ref $defs title description`.split(/\s+/),
);

/**
 * True if strict mode accepts a schema unchanged: an object at the top, every object closed with all members required,
 * and no other keywords.
 */
export function isStrictSchema(schema: JsonObject): boolean {
  return schema.type === "object" && schema.anyOf === undefined && isStrict(schema);
}

function isStrict(schema: Json | undefined): boolean {
  if (!isObject(schema) || !Object.keys(schema).every((key) => KEYWORDS.has(key))) return false;
  const { type, properties, required, additionalProperties, items, anyOf, $defs } = schema;
  const allowsObjects = type === "object" || properties !== undefined ||
    (Array.isArray(type) && type.includes("object"));
  if (allowsObjects) {
    const names = isObject(properties) ? Object.keys(properties) : [];
    if (additionalProperties !== false || !Array.isArray(required)) return false;
    const requiredNames = new Set(required);
    if (!names.every((name) => requiredNames.has(name))) return false;
  }
  return [...valuesOf(properties), ...valuesOf($defs), ...(items === undefined ? [] : [items]), ...(listOf(anyOf))]
    .every(isStrict);
}

function valuesOf(members: Json | undefined): (Json | undefined)[] {
  return isObject(members) ? Object.values(members) : [];
}
