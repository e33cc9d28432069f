/** Reads schemas in Google's subset of OpenAPI 3.0 as JSON Schema. https://ai.google.dev/api/caching#Schema */
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import { listOf, spelledCountOf, textsOf } from "../members.ts";

/** Keywords with counts, which Google writes as text because they are 64-bit integers. */
const COUNT_KEYWORDS: ReadonlySet<string> = new Set([
  ...["maxItems", "minItems", "maxLength", "minLength", "maxProperties", "minProperties"],
]);

/** Returns a schema as JSON Schema. Other keywords of JSON Schema, some of which Google accepts, stay. */
export function readSchema(schema: JsonObject): JsonObject {
  const keywords: [string, Json][] = [];
  for (const [name, value] of Object.entries(schema)) {
    if (value === undefined || value === null) continue;
    const keyword = readKeyword(name, value, schema);
    if (keyword !== undefined) keywords.push(keyword);
  }
  return Object.fromEntries(keywords);
}

function readKeyword(name: string, value: Json, schema: JsonObject): [string, Json] | undefined {
  switch (name) {
    case "type":
      return readType(value, schema);
    case "nullable":
      // It is read with the keywords that it affects. A schema without a type allows null anyway.
      return undefined;
    case "propertyOrdering":
      return undefined;
    case "format":
      return value === "enum" ? undefined : [name, value];
    case "enum":
      return [name, schema.nullable === true ? [...listOf(value), null] : value];
    case "example":
      return ["examples", [value]];
    case "properties":
      return [name, isObject(value) ? readProperties(value, textsOf(schema.propertyOrdering)) : value];
    case "anyOf":
      return [name, readAnyOf(listOf(value), schema)];
    case "items":
    case "additionalProperties":
      return [name, isObject(value) ? readSchema(value) : value];
    case "prefixItems":
      return [name, listOf(value).map((item) => isObject(item) ? readSchema(item) : item)];
    default:
      return COUNT_KEYWORDS.has(name) ? [name, spelledCountOf(value) ?? value] : [name, value];
  }
}

function readType(value: Json, { nullable }: JsonObject): [string, Json] | undefined {
  if (typeof value !== "string") return ["type", value];
  const type = value.toLowerCase();
  if (type === "type_unspecified") return undefined;
  return ["type", nullable === true && type !== "null" ? [type, "null"] : type];
}

function readAnyOf(branches: readonly Json[], { nullable, type }: JsonObject): Json[] {
  const schemas = branches.map((branch): Json => isObject(branch) ? readSchema(branch) : branch);
  return nullable === true && type === undefined ? [...schemas, { type: "null" }] : schemas;
}

/** Reads properties in the order of `propertyOrdering`: models write members in the order of the schema. */
function readProperties(properties: JsonObject, ordering: readonly string[]): JsonObject {
  const names = new Set([...ordering.filter((name) => Object.hasOwn(properties, name)), ...Object.keys(properties)]);
  return Object.fromEntries(Array.from(names, (name) => {
    const property = properties[name] ?? null;
    return [name, isObject(property) ? readSchema(property) : property];
  }));
}
