/** Makes the smallest value that a JSON Schema allows, for embedded models that must answer in a given form. */
import { isObject, isRawNumber, type Json, type JsonObject, writeJson } from "../../json/mod.ts";
import { mergeSchemas, resolveRef } from "../../protocols/canonical/json_schema_merge.ts";

/** Limit of nested schemas. Deeper values would exceed the limits of request bodies when clients send them back. */
const MAX_DEPTH = 56;
/** Limit of steps and output characters, added up. */
const MAX_WORK = 200_000;

/** A valid text for each format. */
const FORMAT_EXAMPLES: ReadonlyMap<Json | undefined, string> = new Map([
  ["date-time", "1970-01-01T00:00:00Z"],
  ["date", "1970-01-01"],
  ["time", "00:00:00Z"],
  ["duration", "P0D"],
  ["email", "a@example.com"],
  ["hostname", "example.com"],
  ["ipv4", "127.0.0.1"],
  ["ipv6", "::1"],
  ["uuid", "00000000-0000-0000-0000-000000000000"],
  ["uri", "https://example.com/"],
]);

interface Walk {
  root: Json;
  workLeft: number;
  /** References being followed: a reference inside itself has no smallest value. */
  refs: Set<string>;
}

/**
 * Returns the smallest value that a schema allows: required members only, the first `enum` value, the first satisfiable
 * branch of `anyOf` or `oneOf`, the number nearest to 0, the shortest text. Members have the order of `properties`,
 * then of `required`. Reads `$ref` within the schema, `allOf`, bounds, lengths and common formats; ignores `pattern`,
 * `not`, `if`, `contains`, `uniqueItems`, `additionalProperties` and `default`. Never throws.
 * @returns undefined if there is no such value, or only one beyond 200,000 characters or 56 levels
 */
export function smallestInstance(schema: Json): Json | undefined {
  return makeInstance(schema, { root: schema, workLeft: MAX_WORK, refs: new Set() }, 0);
}

function makeInstance(schema: Json | undefined, walk: Walk, depth: number): Json | undefined {
  if (schema === false || depth > MAX_DEPTH || !spend(walk, 1)) return undefined;
  if (!isObject(schema)) return null;
  if (typeof schema.$ref === "string") return followRef(schema.$ref, { schema, walk, depth });
  for (const key of ["anyOf", "oneOf"] as const) {
    const branches = schema[key];
    if (!Array.isArray(branches)) continue;
    const others = withoutMember(schema, key);
    for (const branch of branches) {
      const value = makeMergedInstance(others, branch, { walk, depth });
      if (value !== undefined) return value;
    }
    return undefined;
  }
  if (Array.isArray(schema.allOf)) {
    const [first, ...branches] = schema.allOf;
    const others = withoutMember(schema, "allOf");
    if (branches.length > 0) others.allOf = branches;
    return first === undefined
      ? makeInstance(others, walk, depth + 1)
      : makeMergedInstance(others, first, { walk, depth });
  }
  return makePlainInstance(schema, walk, depth);
}

function followRef(ref: string, { schema, walk, depth }: { schema: JsonObject; walk: Walk; depth: number }) {
  if (walk.refs.has(ref)) return undefined;
  walk.refs.add(ref);
  const value = makeMergedInstance(withoutMember(schema, "$ref"), resolveRef(walk.root, ref), { walk, depth });
  walk.refs.delete(ref);
  return value;
}

function makeMergedInstance(
  schema: JsonObject,
  other: Json,
  { walk, depth }: { walk: Walk; depth: number },
): Json | undefined {
  if (!isObject(other)) return other === false ? undefined : makeInstance(schema, walk, depth + 1);
  if (!spend(walk, copyCost(schema) + copyCost(other))) return undefined;
  return makeInstance(mergeSchemas(schema, other), walk, depth + 1);
}

/** Returns a value of a schema without references and branches. */
function makePlainInstance(schema: JsonObject, walk: Walk, depth: number): Json | undefined {
  const types = typeof schema.type === "string" ? [schema.type] : listOf(schema.type);
  const fixed = schema.const !== undefined ? [schema.const] : listOf(schema.enum);
  if (fixed !== undefined) {
    const value = fixed.find((value) => types === undefined || types.some((type) => isOfType(value, type)));
    return value !== undefined && spend(walk, writeJson(value).length) ? value : undefined;
  }
  for (const type of types ?? [impliedType(schema)]) {
    const value = makeInstanceOfType(type, schema, { walk, depth });
    if (value !== undefined) return value;
  }
  return undefined;
}

function listOf(value: Json | undefined): readonly Json[] | undefined {
  return Array.isArray(value) ? value : undefined;
}

function makeInstanceOfType(
  type: Json,
  schema: JsonObject,
  { walk, depth }: { walk: Walk; depth: number },
): Json | undefined {
  switch (type) {
    case "null":
      return null;
    case "boolean":
      return false;
    case "integer":
    case "number":
      return smallestNumber(schema, type === "integer");
    case "string":
      return smallestText(schema, walk);
    case "array":
      return smallestArray(schema, walk, depth);
    case "object":
      return smallestObject(schema, walk, depth);
    default:
      return undefined;
  }
}

function smallestObject(schema: JsonObject, walk: Walk, depth: number): JsonObject | undefined {
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const declared = Object.keys(properties);
  if (!spend(walk, declared.length)) return undefined;
  const undeclared = [...required].filter((name) => typeof name === "string" && !Object.hasOwn(properties, name));
  const members: [string, Json][] = [];
  for (const name of [...declared.filter((name) => required.has(name)), ...undeclared] as string[]) {
    const value = makeInstance(Object.hasOwn(properties, name) ? properties[name] : true, walk, depth + 1);
    if (value === undefined || !spend(walk, name.length)) return undefined;
    members.push([name, value]);
  }
  const min = numberIn(schema.minProperties) ?? 0;
  for (const name of declared) {
    if (members.length >= min) break;
    if (required.has(name)) continue;
    const value = makeInstance(properties[name], walk, depth + 1);
    if (value !== undefined && spend(walk, name.length)) members.push([name, value]);
  }
  return Object.fromEntries(members);
}

function smallestArray(schema: JsonObject, walk: Walk, depth: number): Json[] | undefined {
  const tuple = [schema.prefixItems, schema.items].find((items) => Array.isArray(items)) ?? [];
  const itemSchema = Array.isArray(schema.items) ? schema.additionalItems : schema.items;
  const values: Json[] = [];
  for (const min = numberIn(schema.minItems) ?? 0; values.length < min;) {
    const value = makeInstance(tuple[values.length] ?? itemSchema ?? true, walk, depth + 1);
    if (value === undefined) return undefined;
    values.push(value);
  }
  return values;
}

function smallestText(schema: JsonObject, walk: Walk): string | undefined {
  const min = numberIn(schema.minLength) ?? 0;
  const format = FORMAT_EXAMPLES.get(schema.format);
  const length = Math.max(format?.length ?? 0, min);
  if (min > (numberIn(schema.maxLength) ?? Infinity) || !spend(walk, length)) return undefined;
  if (format === undefined) return "a".repeat(Math.ceil(min));
  if (schema.format === "uri") return format.padEnd(min, "a");
  return schema.format === "email" ? format.padStart(min, "a") : format;
}

/** Returns the allowed number nearest to 0. */
function smallestNumber(schema: JsonObject, integer: boolean): number | undefined {
  // Draft 4 has `exclusiveMinimum: true` beside `minimum`.
  const exclusiveBound = (inclusive: Json | undefined, exclusive: Json | undefined) =>
    numberIn(exclusive) ?? (exclusive === true ? numberIn(inclusive) : undefined);
  const low = numberIn(schema.minimum) ?? -Infinity;
  const above = exclusiveBound(schema.minimum, schema.exclusiveMinimum) ?? -Infinity;
  const high = numberIn(schema.maximum) ?? Infinity;
  const below = exclusiveBound(schema.maximum, schema.exclusiveMaximum) ?? Infinity;
  const fits = (x: number) => Number.isFinite(x) && x >= low && x > above && x <= high && x < below;
  const multiple = numberIn(schema.multipleOf);
  const step = integer && !(multiple !== undefined && Number.isInteger(multiple)) ? 1 : multiple;

  if (fits(0)) return 0;
  const min = Math.max(low, above);
  const max = Math.min(high, below);
  return min >= 0 ? candidates(min, max, step).find(fits) : candidates(-max, -min, step).map((x) => -x).find(fits);
}

/** Returns numbers from `min` >= 0 upwards. If any number is allowed, the smallest one is among them. */
function candidates(min: number, max: number, step: number | undefined): number[] {
  if (step === undefined || !(step > 0)) return [min, min + 1, (min + max) / 2];
  const count = Math.ceil(min / step);
  // 3 * 0.1 is not 0.3, so the last digits are rounded.
  return [count, count + 1].map((n) => Number((n * step).toPrecision(15)));
}

function impliedType(schema: JsonObject): string {
  const has = (...keys: string[]) => keys.some((key) => schema[key] !== undefined);
  if (has("properties", "required", "minProperties")) return "object";
  if (has("items", "prefixItems", "minItems")) return "array";
  if (has("format", "minLength", "maxLength", "pattern")) return "string";
  if (has("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")) return "number";
  return "null";
}

/** True if a value has a type, by its name in JSON Schema. */
export function isOfType(value: Json, type: Json): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    case "integer":
      return Number.isInteger(numberIn(value));
    case "number":
      return numberIn(value) !== undefined;
    case "string":
      return typeof value === "string";
    case "boolean":
      return typeof value === "boolean";
    default:
      return false;
  }
}

/** Returns the value as a number; undefined if it is not one. */
export function numberIn(value: Json | undefined): number | undefined {
  if (isRawNumber(value)) return Number(value.rawJSON);
  return typeof value === "number" ? value : undefined;
}

function withoutMember(schema: JsonObject, key: string): JsonObject {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => name !== key));
}

/** Returns the approximate number of steps that a copy of the schema takes. */
function copyCost(schema: JsonObject): number {
  const inner = [schema.required, schema.enum, schema.allOf].map((list) => Array.isArray(list) ? list.length : 0);
  const properties = isObject(schema.properties) ? Object.keys(schema.properties).length : 0;
  return inner.reduce((sum, length) => sum + length, Object.keys(schema).length + properties);
}

/** Subtracts a cost from the remaining work. @returns false if it is used up */
function spend(walk: Walk, cost: number): boolean {
  walk.workLeft -= cost;
  return walk.workLeft >= 0;
}
