/**
 * Normalizes the names of members. Clients of Google may write names in camel case, or in snake case as in the protocol
 * buffers. They may also write the only item of a list in place of the list, as many of Google's examples do. All other
 * files of this folder read names in camel case, and lists.
 */
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import { usualName } from "../extras.ts";

/** Names of members that the gateway knows, at any depth. */
const KNOWN_NAMES =
  `contents role parts text thought thoughtSignature inlineData mimeType data displayName fileData fileUri
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

/** Names of members of a schema in OpenAPI's form. */
const SCHEMA_NAMES = `type format title description nullable enum maxItems minItems properties required minProperties
  maxProperties minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum
  additionalProperties prefixItems`.split(/\s+/);

/** Members whose contents are the client's own, so that the names inside them stay. */
const FREE_MEMBERS: ReadonlySet<string> = new Set(
  ["args", "response", "parametersJsonSchema", "responseJsonSchema", "labels", "partMetadata", "provider", "models"],
);
/** Members of schemas whose contents are the client's own. */
const FREE_SCHEMA_MEMBERS: ReadonlySet<string> = new Set(
  ["enum", "example", "default", "required", "propertyOrdering"],
);
/** Members that are schemas in OpenAPI's form. */
const SCHEMA_MEMBERS: ReadonlySet<string> = new Set(["parameters", "responseSchema"]);

const LIST_MEMBERS: ReadonlySet<string> = new Set(
  ["contents", "parts", "tools", "functionDeclarations", "safetySettings"],
);

const SPELLINGS = spellingsOf(KNOWN_NAMES);
const SCHEMA_SPELLINGS = spellingsOf(SCHEMA_NAMES);

/** Maps the known names, as they are and in lower case, to the known names. */
function spellingsOf(names: readonly string[]): ReadonlyMap<string, string> {
  return new Map(names.flatMap((name) => [[name, name], [name.toLowerCase(), name]]));
}

/** Returns the known name as which servers may read a name; the name itself if there is none. */
function knownNameOf(name: string, spellings: ReadonlyMap<string, string>): string {
  return spellings.get(name) ?? spellings.get(usualName(name).replaceAll("_", "")) ?? name;
}

/**
 * Returns the body with known members in camel case, and with lists in place of only items. If that changes nothing, it
 * returns the same object.
 * @throws {GatewayError} `invalid` for a member in two spellings
 */
export function inCamelCase(body: JsonObject): JsonObject {
  return objectInCamelCase(body, "");
}

function objectInCamelCase(object: JsonObject, path: string): JsonObject {
  return renameMembers(object, path, SPELLINGS, (name, value, memberPath) => {
    if (FREE_MEMBERS.has(name)) return value;
    if (SCHEMA_MEMBERS.has(name)) return schemaInCamelCase(value, memberPath);
    if (LIST_MEMBERS.has(name) && isObject(value)) return [objectInCamelCase(value, `${memberPath}[0]`)];
    return valueInCamelCase(value, memberPath);
  });
}

function valueInCamelCase(value: Json, path: string): Json {
  if (Array.isArray(value)) return mapList(value, (item, index) => valueInCamelCase(item, `${path}[${index}]`));
  return isObject(value) ? objectInCamelCase(value, path) : value;
}

function schemaInCamelCase(value: Json, path: string): Json {
  if (Array.isArray(value)) return mapList(value, (item, index) => schemaInCamelCase(item, `${path}[${index}]`));
  if (!isObject(value)) return value;
  return renameMembers(value, path, SCHEMA_SPELLINGS, (name, inner, memberPath) => {
    if (FREE_SCHEMA_MEMBERS.has(name)) return inner;
    if (name !== "properties" || !isObject(inner)) return schemaInCamelCase(inner, memberPath);
    // The names in `properties` are those of arguments.
    return renameMembers(
      inner,
      memberPath,
      new Map(),
      (_name, property, propertyPath) => schemaInCamelCase(property, propertyPath),
    );
  });
}

/** Gives every member its known name and applies `change` to its value. Returns the same object if nothing changes. */
function renameMembers(
  object: JsonObject,
  path: string,
  spellings: ReadonlyMap<string, string>,
  change: (name: string, value: Json, path: string) => Json,
): JsonObject {
  const entries: [string, Json][] = [];
  let isChanged = false;
  for (const name in object) {
    const value = object[name] as Json;
    const known = knownNameOf(name, spellings);
    const memberPath = path === "" ? known : `${path}.${known}`;
    if (known !== name && Object.hasOwn(object, known)) {
      throw new GatewayError("invalid", `Cannot use both ${known} and ${name}: they are spellings of the same member`, {
        param: memberPath,
      });
    }
    const changed = change(known, value, memberPath);
    isChanged ||= known !== name || changed !== value;
    entries.push([known, changed]);
  }
  if (!isChanged) return object;
  const renamedObject = Object.fromEntries(entries);
  if (Object.keys(renamedObject).length < entries.length) {
    throw new GatewayError("invalid", `Cannot read ${path || "the body"}: it has the same member in two spellings`, {
      ...(path !== "" && { param: path }),
    });
  }
  return renamedObject;
}

/** Maps a list; returns the same list if no item changes. */
function mapList(list: Json[], change: (item: Json, index: number) => Json): Json[] {
  const changed = list.map(change);
  return changed.every((item, index) => item === list[index]) ? list : changed;
}
