/** Writes request bodies. */
import type { OutputFormat, Prompt } from "../canonical/types.ts";
import type { Model } from "../../catalog/model.ts";
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject, writeJson } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { writeMessages } from "./write_messages.ts";
import { parameterName } from "./parameter_names.ts";
import { writeSampling, writeStop } from "./write_sampling.ts";
import { isThinking, writeThinking } from "./write_thinking.ts";
import { enforcesSchemas, writeTools } from "./write_tools.ts";

/**
 * Writes a prompt as the body of `POST /v1/messages`. Reading a body of this protocol and writing it again changes only
 * how things are spelled: defaults and nulls are left out, single texts are strings, pictures in `data:` URLs are bytes,
 * `output_format` is `output_config.format`, and turns that say nothing are gone.
 * @throws {GatewayError} `invalid`, for what cannot be said and must not be left out
 */
export function writePrompt(prompt: Prompt, target: WriteTarget): JsonObject {
  if ((prompt.n ?? 1) > 1) {
    throw new GatewayError("invalid", `Cannot make ${prompt.n} answers: this model makes one per request`, {
      param: "n",
    });
  }
  const own = prompt.unknownMembers?.from === "messages" ? prompt.unknownMembers.members : {};
  const most = target.row.top_provider.max_completion_tokens;
  const maxTokens = Math.min(prompt.maxTokens ?? defaultMaxTokens(target.row), most);
  const { thinking, effort } = writeThinking(prompt, { target, maxTokens });
  const { format, lines } = writeFormat(prompt, target);
  const config = { ...members(own.output_config), ...(effort && { effort }), ...(format && { format }) };
  const metadata = { ...members(own.metadata), ...(prompt.user !== undefined && { user_id: prompt.user }) };
  const body: JsonObject = {
    ...own,
    model: target.model,
    max_tokens: maxTokens,
    ...writeMessages(prompt, { target, lines }),
    ...writeTools(prompt, target),
    ...(thinking !== undefined && { thinking }),
    ...writeSampling(prompt, { target, thinking: isThinking(thinking) }),
    ...writeStop(prompt, target),
    ...(prompt.stream && { stream: true }),
  };
  return withObjects(body, { output_config: config, metadata });
}

/** A body with those of the objects that hold anything. After a `delete` its JSON takes twice the time: it is the exception. */
function withObjects(body: JsonObject, objects: Readonly<Record<string, JsonObject>>): JsonObject {
  for (const name in objects) {
    const value = objects[name] ?? {};
    if (Object.keys(value).length > 0) body[name] = value;
    else if (Object.hasOwn(body, name)) delete body[name];
  }
  return body;
}

/**
 * The form of the answer. A model that cannot be held to a schema is told of it, which is less: so it is named. Plain
 * JSON has no form of its own here; the model is always told.
 */
function writeFormat(prompt: Prompt, target: WriteTarget): { format?: JsonObject; lines: string[] } {
  const { format, protocol } = prompt;
  switch (format?.type) {
    case undefined:
    case "text":
      return { lines: [] };
    case "json_object":
      return { lines: ["Answer with one JSON object and nothing else."] };
    case "json_schema": {
      if (!enforcesSchemas(target)) {
        target.dropped.add(parameterName("format", protocol));
        return { lines: [schemaLine(format)] };
      }
      // The protocol has no other place for what the client says about the answer as a whole.
      const { schema, description } = format;
      const described = description === undefined ? schema : { description, ...schema };
      return { format: { type: "json_schema", schema: described }, lines: [] };
    }
  }
}

function schemaLine({ schema, description }: Extract<OutputFormat, { type: "json_schema" }>): string {
  const what = description === undefined ? "" : ` (${description})`;
  return `Answer with JSON${what} that is valid by this JSON Schema, and nothing else:\n${writeJson(schema)}`;
}

function members(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}

/** What is asked for where the client set no limit and the catalog states none either: every current model of the vendor gives as much. */
const UNSTATED_MAX_TOKENS = 8192;

/** The protocol requires a limit. A row whose limit is the whole context states none: no model can answer that long. */
function defaultMaxTokens({ top_provider: { max_completion_tokens: most }, context_length: context }: Model): number {
  return most < context ? most : Math.min(most, UNSTATED_MAX_TOKENS);
}
