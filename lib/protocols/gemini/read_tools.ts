/** Reads the tools and the tool choice of a Gemini request. */
import type { Tool, ToolChoice } from "../canonical/types.ts";
import { unknownIn } from "../canonical/unknown_members.ts";
import { GatewayError } from "../../errors.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { checkCount } from "../fields.ts";
import { objectOf, objectsOf, present, stringOf, textsOf } from "../members.ts";
import { readSchema } from "./read_schema.ts";

const DECLARATION_MEMBERS = new Set(["name", "description", "parameters", "parametersJsonSchema"]);

/**
 * Reads the tools: the client's functions, and one hosted tool for each other member of a tool.
 * @throws {GatewayError} `invalid`, for too many tools, or a function with two schemas
 */
export function readTools(value: Json | undefined): Tool[] {
  const tools = objectsOf(value).flatMap((tool): Tool[] =>
    Object.entries(tool).flatMap(([name, member]): Tool[] => {
      if (name === "functionDeclarations") return objectsOf(member).map(readDeclaration);
      return member === null || member === undefined
        ? []
        : [{ type: "hosted", from: "gemini", value: { [name]: member } }];
    })
  );
  checkCount("tools", tools.length, "tools");
  return tools;
}

/** Reads a function. @throws {GatewayError} `invalid`, for two schemas */
function readDeclaration(declaration: JsonObject): Tool {
  const jsonSchema = objectOf(declaration.parametersJsonSchema);
  const openapiSchema = objectOf(declaration.parameters);
  if (jsonSchema !== undefined && openapiSchema !== undefined) {
    throw new GatewayError("invalid", "Cannot use both parameters and parametersJsonSchema", { param: "tools" });
  }
  return {
    type: "function",
    name: stringOf(declaration.name) ?? "",
    ...present({
      description: stringOf(declaration.description),
      parameters: jsonSchema ?? (openapiSchema && readSchema(openapiSchema)),
    }),
    ...unknownIn("gemini", declaration, DECLARATION_MEMBERS),
  };
}

/** Reads `toolConfig.functionCallingConfig`; returns undefined if it sets no mode. */
export function readToolChoice(value: Json | undefined): ToolChoice | undefined {
  const config = objectOf(objectOf(value)?.functionCallingConfig);
  const mode = stringOf(config?.mode)?.toUpperCase();
  const names = textsOf(config?.allowedFunctionNames);
  const [name] = names;
  switch (mode) {
    case "AUTO":
      return { type: "auto" };
    case "NONE":
      return { type: "none" };
    case "ANY":
      if (name === undefined) return { type: "required" };
      return names.length === 1 ? { type: "tool", name } : { type: "allowed", mode: "required", names };
    case "VALIDATED":
      return name === undefined ? { type: "auto" } : { type: "allowed", mode: "auto", names };
    default:
      return undefined;
  }
}
