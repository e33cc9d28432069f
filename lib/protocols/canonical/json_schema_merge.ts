/** Merges JSON Schemas, and finds the schemas that they refer to. */
import { isObject, isRawNumber, type Json, type JsonObject, writeJson } from "../../json/mod.ts";
import { listOf } from "../members.ts";

/**
 * Returns a schema for values that are valid in both. If both have `$ref`, `anyOf` or `oneOf`, which cannot be joined,
 * those of the second go into `allOf`.
 */
export function mergeSchemas(first: JsonObject, second: JsonObject): JsonObject {
  const merged = new Map<string, Json | undefined>(Object.entries(first));
  const separate: Json[] = [];
  for (const [key, b] of Object.entries(second)) {
    const a = merged.get(key);
    if (a === undefined || b === undefined) {
      merged.set(key, a ?? b);
    } else if (key === "$ref" || key === "anyOf" || key === "oneOf") {
      separate.push({ [key]: b });
    } else {
      merged.set(key, mergeKeyword(key, a, b));
    }
  }
  if (separate.length > 0) merged.set("allOf", [...listOf(merged.get("allOf")), ...separate]);
  return Object.fromEntries(merged);
}

function mergeKeyword(key: string, a: Json, b: Json): Json {
  switch (key) {
    case "required":
      return [...new Set([...listOf(a), ...listOf(b)])];
    case "allOf":
      return [...listOf(a), ...listOf(b)];
    case "properties":
      return isObject(a) && isObject(b) ? mergeProperties(a, b) : b;
    case "type":
      return commonTypes(types(a), types(b));
    case "enum": {
      const allowed = new Set(listOf(b).map(writeJson));
      return listOf(a).filter((value) => allowed.has(writeJson(value)));
    }
    case "minimum":
    case "exclusiveMinimum":
    case "minLength":
    case "minItems":
    case "minProperties":
      return toNumber(a) > toNumber(b) ? a : b;
    case "maximum":
    case "exclusiveMaximum":
    case "maxLength":
    case "maxItems":
    case "maxProperties":
      return toNumber(a) < toNumber(b) ? a : b;
    case "const":
      return a;
    default:
      return b;
  }
}

function mergeProperties(a: JsonObject, b: JsonObject): JsonObject {
  const merged = new Map<string, Json | undefined>(Object.entries(a));
  for (const [name, schema] of Object.entries(b)) {
    const other = merged.get(name);
    const isSame = other === undefined || schema === undefined || other === schema;
    merged.set(name, isSame ? other ?? schema : { allOf: [other, schema] });
  }
  return Object.fromEntries(merged);
}

function commonTypes(a: Json[], b: Json[]): Json[] {
  return [...new Set([...a.filter(isCoveredBy(b)), ...b.filter(isCoveredBy(a))])];
}

function isCoveredBy(types: Json[]): (type: Json) => boolean {
  const all = new Set(types);
  return (type) => all.has(type) || (type === "integer" && all.has("number"));
}

function types(value: Json): Json[] {
  return Array.isArray(value) ? value : [value];
}

function toNumber(value: Json): number {
  return isRawNumber(value) ? Number(value.rawJSON) : Number(value);
}

/** Returns the schema at a reference inside `root`; `true`, which allows anything, if there is none. */
export function resolveRef(root: Json, ref: string): Json {
  if (ref !== "#" && !ref.startsWith("#/")) return true;
  let value: Json | undefined = root;
  for (const part of ref.split("/").slice(1)) {
    const key = decode(part).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return true;
    value = (value as JsonObject)[key];
  }
  return value ?? true;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
