/** Rewrites schemas of structured output for vendors that accept only a subset of JSON Schema. */
import { isObject, type Json, type JsonObject, writeSteps } from "../../json/mod.ts";

/** Work that callers may interrupt where it yields. */
type Steps<T> = Generator<void, T>;

/** Values of `format` that vendors accept. */
const ACCEPTED_FORMATS: ReadonlySet<Json | undefined> = new Set(
  `date-time time date duration email hostname uri ipv4 ipv6 uuid`.split(/\s+/),
);

/** Keywords that stay as they are. */
const KEPT_KEYWORDS = new Set(["enum", "const", "title", "required"]);
const DEFINITIONS = ["$defs", "definitions"] as const;
/** Keywords that `rewriteKeyword` does not get, because others depend on them or because they move. */
const WRITTEN_SEPARATELY: ReadonlySet<string> = new Set(["type", "description", ...DEFINITIONS]);

/**
 * Returns a schema of the accepted subset: objects are closed, `oneOf` becomes `anyOf`, a reference has no other
 * members, and definitions are in `$defs`. Every other keyword moves into the description, where the model can read it.
 * Idempotent. Yields after each schema.
 * @param schema one for which `needsOpenObjects` returns false
 */
export function* structuredOutputSchema(schema: JsonObject): Steps<JsonObject> {
  yield;
  const definitions = yield* rewriteDefinitions(schema);
  if (typeof schema.$ref === "string") {
    return { $ref: schema.$ref.replace(/^#\/definitions\//, "#/$defs/"), ...definitions };
  }
  const type = typeOf(schema);
  const written: JsonObject = type === undefined ? {} : { type };
  const moved: string[] = [];
  for (const [key, value] of Object.entries(schema)) {
    if (value === undefined || WRITTEN_SEPARATELY.has(key)) continue;
    const rewritten = yield* rewriteKeyword(key, value, type);
    // There is one `anyOf`: a `oneOf` beside it moves into the description.
    const isFree = rewritten !== undefined && Object.keys(rewritten).every((key) => written[key] === undefined);
    if (isFree) Object.assign(written, rewritten);
    else if (!(key === "additionalProperties" && typeof value === "boolean") && !/^\$(?:schema|id)$/.test(key)) {
      moved.push(`${key}: ${yield* writeSteps(value)}`);
    }
  }
  if (isObjectType(type)) written.additionalProperties = false;
  const descriptions = typeof schema.description === "string" && schema.description !== "" ? [schema.description] : [];
  if (moved.length > 0) descriptions.push(`{${moved.join(", ")}}`);
  return {
    ...written,
    ...(descriptions.length > 0 && { description: descriptions.join("\n\n") }),
    ...definitions,
  };
}

/**
 * Returns whether a schema, or one inside it, allows anything or is a map: an object whose members it does not name. The
 * accepted subset has neither: every schema needs a type or values, and a map could only be empty. Yields after each
 * schema.
 */
export function* needsOpenObjects(schema: Json | undefined): Steps<boolean> {
  yield;
  if (!isObject(schema)) return schema === true;
  const { properties, additionalProperties, patternProperties, items, anyOf, oneOf, allOf } = schema;
  const type = typeOf(schema);
  if (type === undefined && typeof schema.$ref !== "string" && !hasTypeOrValues(schema)) return true;
  const hasMembers = [properties, anyOf, oneOf, allOf].some((keyword) => keyword !== undefined);
  const isMap = isObjectType(type) && !hasMembers && additionalProperties !== false;
  if (isMap || patternProperties !== undefined) return true;
  if (isObject(additionalProperties) && Object.keys(additionalProperties).length > 0) return true;
  const groups = [properties, schema.$defs, schema.definitions].map((group) => isObject(group) ? group : {});
  const inner = [items, ...[anyOf, oneOf, allOf].flatMap((list) => Array.isArray(list) ? list : [])];
  for (const value of [...inner, ...groups.flatMap((group) => Object.values(group))]) {
    if (yield* needsOpenObjects(value)) return true;
  }
  return false;
}

function* rewriteKeyword(key: string, value: Json, type: Json | undefined): Steps<JsonObject | undefined> {
  switch (key) {
    case "anyOf":
    case "oneOf":
    case "allOf":
      return Array.isArray(value) ? { [key === "oneOf" ? "anyOf" : key]: yield* rewriteEach(value) } : undefined;
    case "properties":
      return isObject(value) ? { properties: yield* rewriteMembers(value) } : undefined;
    case "items":
      return Array.isArray(value) ? undefined : { items: yield* rewriteAny(value) };
    case "minItems":
      return value === 0 || value === 1 ? { minItems: value } : undefined;
    case "format":
      return ACCEPTED_FORMATS.has(value) && type === "string" ? { format: value } : undefined;
    default:
      return KEPT_KEYWORDS.has(key) ? { [key]: value } : undefined;
  }
}

function* rewriteEach(values: readonly Json[]): Steps<JsonObject[]> {
  const written: JsonObject[] = [];
  for (const value of values) written.push(yield* rewriteAny(value));
  return written;
}

function rewriteAny(value: Json): Steps<JsonObject> {
  return structuredOutputSchema(isObject(value) ? value : {});
}

function* rewriteMembers(members: JsonObject): Steps<JsonObject> {
  const written: [string, JsonObject][] = [];
  for (const [name, value] of Object.entries(members)) written.push([name, yield* rewriteAny(value ?? {})]);
  return Object.fromEntries(written);
}

function* rewriteDefinitions(schema: JsonObject): Steps<JsonObject> {
  const entries: [string, Json | undefined][] = [];
  for (const key of DEFINITIONS) {
    const definitions = schema[key];
    if (isObject(definitions)) entries.push(...Object.entries(yield* rewriteMembers(definitions)));
  }
  return entries.length === 0 ? {} : { $defs: Object.fromEntries(entries) };
}

/** Returns the type that a schema names, or that its keywords imply; undefined if they imply none. */
function typeOf(
  { type, properties, items, anyOf, oneOf, allOf, enum: values, const: only }: JsonObject,
): Json | undefined {
  if (type !== undefined) return type;
  if ([anyOf, oneOf, allOf, values, only].some((keyword) => keyword !== undefined)) return undefined;
  if (properties !== undefined) return "object";
  return items !== undefined ? "array" : undefined;
}

function isObjectType(type: Json | undefined): boolean {
  return type === "object" || (Array.isArray(type) && type.includes("object"));
}

function hasTypeOrValues(schema: JsonObject): boolean {
  return ["type", "anyOf", "oneOf", "allOf", "enum", "const"].some((key) => schema[key] !== undefined);
}
