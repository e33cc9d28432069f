/** Recognizes schemas that OpenAI's strict mode accepts unchanged. */
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";

/** Keywords that every version of the strict mode accepts. */
const KEYWORDS: ReadonlySet<string> = new Set([
  "type",
  "properties",
  "required",
  "additionalProperties",
  "items",
  "anyOf",
  "enum",
  "const",
  "$ref",
  "$defs",
  "title",
  "description",
]);

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
  return [...valuesOf(properties), ...valuesOf($defs), ...(items === undefined ? [] : [items]), ...(itemsOf(anyOf))]
    .every(isStrict);
}

function valuesOf(members: Json | undefined): (Json | undefined)[] {
  return isObject(members) ? Object.values(members) : [];
}

function itemsOf(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}
