/**
 * Spelling of members. Google's JSON has their names in camel case or as in the protocol buffers, in snake case, and may
 * have the only item of a list in place of the list, as many of its examples do; from here on names are in camel case, and
 * lists are lists.
 */
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import { usualName } from "../extras.ts";

/** Members that the gateway knows, at any depth. */
const NAMES = `contents role parts text thought thoughtSignature inlineData mimeType data displayName fileData fileUri
  functionCall id name args functionResponse response executableCode codeExecutionResult toolCall toolResponse
  videoMetadata partMetadata mediaResolution systemInstruction tools functionDeclarations description parameters
  parametersJsonSchema behavior googleSearch googleSearchRetrieval enterpriseWebSearch exaAiSearch parallelAiSearch
  codeExecution urlContext computerUse fileSearch googleMaps retrieval mcpServers toolConfig functionCallingConfig mode
  allowedFunctionNames streamFunctionCallArguments retrievalConfig includeServerSideToolInvocations generationConfig
  stopSequences responseMimeType responseSchema responseJsonSchema responseFormat candidateCount maxOutputTokens
  temperature topP topK seed presencePenalty frequencyPenalty responseLogprobs logprobs enableEnhancedCivicAnswers
  responseModalities speechConfig imageConfig audioTimestamp routingConfig modelSelectionConfig thinkingConfig
  includeThoughts thinkingBudget thinkingLevel safetySettings cachedContent labels serviceTier store continuationToken
  modelArmorConfig generateContentRequest provider models`.split(/\s+/);

/** Members of a schema in OpenAPI's form. */
const SCHEMA_NAMES = `type format title description nullable enum maxItems minItems properties required minProperties
  maxProperties minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum
  additionalProperties prefixItems`.split(/\s+/);

/** Members whose contents are the client's own: their names have no meaning here. */
const FREE: ReadonlySet<string> = new Set(
  ["args", "response", "parametersJsonSchema", "responseJsonSchema", "labels", "partMetadata", "provider", "models"],
);
const FREE_IN_SCHEMA: ReadonlySet<string> = new Set(["enum", "example", "default", "required", "propertyOrdering"]);
const SCHEMAS: ReadonlySet<string> = new Set(["parameters", "responseSchema"]);

/** Lists of objects. */
const LISTS: ReadonlySet<string> = new Set(["contents", "parts", "tools", "functionDeclarations", "safetySettings"]);

const SPELLINGS = spellingsOf(NAMES);
const SCHEMA_SPELLINGS = spellingsOf(SCHEMA_NAMES);

function spellingsOf(names: readonly string[]): ReadonlyMap<string, string> {
  return new Map(names.map((name) => [name.toLowerCase(), name]));
}

/** The known name that servers may read a name as; the name itself if there is none. */
function spell(name: string, spellings: ReadonlyMap<string, string>): string {
  return spellings.get(usualName(name).replaceAll("_", "")) ?? name;
}

/**
 * Returns the body with known members in camel case, and lists in place of only items; the same object if they are already.
 * @throws {GatewayError} `invalid` for a member that is there in two spellings
 */
export function inCamelCase(body: JsonObject): JsonObject {
  return objectInCamelCase(body, "");
}

function objectInCamelCase(object: JsonObject, path: string): JsonObject {
  return renamed(object, path, SPELLINGS, (name, value, at) => {
    if (FREE.has(name)) return value;
    if (SCHEMAS.has(name)) return schemaInCamelCase(value, at);
    if (LISTS.has(name) && isObject(value)) return [objectInCamelCase(value, `${at}[0]`)];
    return valueInCamelCase(value, at);
  });
}

function valueInCamelCase(value: Json, path: string): Json {
  if (Array.isArray(value)) return mapped(value, (item, index) => valueInCamelCase(item, `${path}[${index}]`));
  return isObject(value) ? objectInCamelCase(value, path) : value;
}

function schemaInCamelCase(value: Json, path: string): Json {
  if (Array.isArray(value)) return mapped(value, (item, index) => schemaInCamelCase(item, `${path}[${index}]`));
  if (!isObject(value)) return value;
  return renamed(value, path, SCHEMA_SPELLINGS, (name, inner, at) => {
    if (FREE_IN_SCHEMA.has(name)) return inner;
    if (name !== "properties" || !isObject(inner)) return schemaInCamelCase(inner, at);
    // Here the names are those of arguments.
    return renamed(inner, at, new Map(), (_name, property, to) => schemaInCamelCase(property, to));
  });
}

/** Applies `change` to every member, under its known name. Returns the same object if nothing changes. */
function renamed(
  object: JsonObject,
  path: string,
  spellings: ReadonlyMap<string, string>,
  change: (name: string, value: Json, path: string) => Json,
): JsonObject {
  const entries: [string, Json][] = [];
  let isChanged = false;
  for (const name in object) {
    const value = object[name] as Json;
    const known = spell(name, spellings);
    const at = path === "" ? known : `${path}.${known}`;
    if (known !== name && Object.hasOwn(object, known)) {
      throw new GatewayError("invalid", `Cannot use both ${known} and ${name}: they are one member`, { param: at });
    }
    const changed = change(known, value, at);
    isChanged ||= known !== name || changed !== value;
    entries.push([known, changed]);
  }
  if (!isChanged) return object;
  const renamedObject = Object.fromEntries(entries);
  if (Object.keys(renamedObject).length < entries.length) {
    throw new GatewayError("invalid", `Cannot read ${path || "the body"}: it has a member in two spellings`, {
      ...(path !== "" && { param: path }),
    });
  }
  return renamedObject;
}

function mapped(list: Json[], change: (item: Json, index: number) => Json): Json[] {
  const changed = list.map(change);
  return changed.every((item, index) => item === list[index]) ? list : changed;
}
