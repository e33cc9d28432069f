/**
 * Reads and writes settings of requests that have nearly the same form in OpenAI's two protocols, chat and responses.
 */
import { hash } from "node:crypto";
import type { OutputFormat, Tool, ToolChoice } from "./canonical/types.ts";
import type { Json, JsonObject } from "../json/mod.ts";
import { booleanOf, objectOf, present, stringOf } from "./members.ts";

/**
 * Reads a format.
 * @param schema holds the schema of the type `json_schema` and its options
 */
export function readOutputFormat(format: JsonObject | undefined, schema = format): OutputFormat | undefined {
  switch (format?.type) {
    case "text":
      return { type: "text" };
    case "json_object": {
      // Together, Fireworks, llama.cpp and others accept a schema here, and Instructor for JavaScript sends it.
      const ownSchema = objectOf(format.schema);
      return ownSchema === undefined ? { type: "json_object" } : { type: "json_schema", schema: ownSchema };
    }
    case "json_schema":
      return {
        type: "json_schema",
        // An empty schema allows every JSON value, like a missing schema.
        schema: objectOf(schema?.schema) ?? {},
        ...present({
          name: stringOf(schema?.name),
          description: stringOf(schema?.description),
          strict: booleanOf(schema?.strict),
        }),
      };
    default:
      return undefined;
  }
}

/** Reads a function of the client. */
export function readFunction(value: JsonObject): Extract<Tool, { type: "function" }> {
  return {
    type: "function",
    name: stringOf(value.name) ?? "",
    ...present({
      description: stringOf(value.description),
      parameters: objectOf(value.parameters),
      strict: booleanOf(value.strict),
    }),
  };
}

/** Length of the longest id of an end user that OpenAI accepts. */
const MAX_USER_LENGTH = 64;

/** Returns the id of an end user; for a longer one than OpenAI accepts, its SHA-256 hash in hexadecimal digits. */
export function endUserId(user: string): string {
  return user.length > MAX_USER_LENGTH ? hash("sha256", user) : user;
}

/** The forms of a tool choice that differ between the two protocols. */
export interface ChoiceForms {
  /** Writes the choice of one tool. */
  named(name: string, custom: boolean): JsonObject;
  /** Writes the choice of several tools, given with the mode of the choice. */
  allowed(choice: JsonObject): JsonObject;
}

/** Writes a tool choice. @param tools the tools of the request */
export function writeToolChoice(choice: ToolChoice, tools: readonly Tool[], { named, allowed }: ChoiceForms): Json {
  switch (choice.type) {
    case "auto":
    case "none":
    case "required":
      return choice.type;
    case "tool":
      return named(choice.name, choice.custom === true);
    case "allowed": {
      const custom = new Set(tools.flatMap((tool) => tool.type === "custom" ? [tool.name] : []));
      return allowed({ mode: choice.mode, tools: choice.names.map((name) => named(name, custom.has(name))) });
    }
    case "vendor_specific":
      return choice.value;
  }
}
