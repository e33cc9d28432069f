/** Checks whether a value is an instance of a JSON Schema. */
import { isObject, type Json, type JsonObject, writeJson } from "../../json/mod.ts";
import { resolveRef } from "../../protocols/canonical/json_schema_merge.ts";
import { isOfType, numberIn } from "./smallest_instance.ts";

/** Limit of nested schemas. */
const MAX_DEPTH = 128;
/** Limit of all schemas that are compared with values. */
const MAX_STEPS = 200_000;

/**
 * Keywords that may refuse a value but are not checked. `pattern` is not: a client's expression could take any time.
 */
const UNCHECKED_KEYWORDS =
  `pattern patternProperties propertyNames contains minContains maxContains uniqueItems not if dependencies
  dependentRequired dependentSchemas unevaluatedItems unevaluatedProperties $dynamicRef $recursiveRef`.split(/\s+/);

interface Walk {
  root: Json;
  stepsLeft: number;
}

/**
 * True if the value is certainly an instance. False also if the schema has a keyword that is not checked, and beyond
 * 200,000 steps or 128 levels. Formats are not checked. Never throws.
 */
export function isInstance(value: Json, schema: Json): boolean {
  return check(value, schema, { root: schema, stepsLeft: MAX_STEPS }, 0);
}

function check(value: Json, schema: Json | undefined, walk: Walk, depth: number): boolean {
  if (schema === true || schema === undefined) return true;
  if (!isObject(schema) || depth > MAX_DEPTH || --walk.stepsLeft < 0) return false;
  if (UNCHECKED_KEYWORDS.some((name) => schema[name] !== undefined && schema[name] !== false)) return false;
  const checkInner = (inner: Json | undefined, part: Json = value) => check(part, inner, walk, depth + 1);
  if (typeof schema.$ref === "string" && !checkInner(resolveRef(walk.root, schema.$ref))) return false;
  if (Array.isArray(schema.allOf) && !schema.allOf.every((inner) => checkInner(inner))) return false;
  if (Array.isArray(schema.anyOf) && !schema.anyOf.some((inner) => checkInner(inner))) return false;
  if (Array.isArray(schema.oneOf) && schema.oneOf.filter((inner) => checkInner(inner)).length !== 1) return false;
  return hasType(value, schema.type) && isListedValue(value, schema) && checkNumber(value, schema) &&
    checkText(value, schema) && checkArray(value, schema, checkInner) && checkObject(value, schema, checkInner);
}

function hasType(value: Json, type: Json | undefined): boolean {
  if (type === undefined) return true;
  return Array.isArray(type) ? type.some((option) => isOfType(value, option)) : isOfType(value, type);
}

/** Checks `const` and `enum`. Objects are compared as JSON text: another order of members counts as another value. */
function isListedValue(value: Json, schema: JsonObject): boolean {
  if (schema.const === undefined && schema.enum === undefined) return true;
  const text = writeJson(value);
  if (schema.const !== undefined && writeJson(schema.const) !== text) return false;
  return !Array.isArray(schema.enum) || schema.enum.some((option) => writeJson(option) === text);
}

function checkNumber(value: Json, schema: JsonObject): boolean {
  const number = numberIn(value);
  if (number === undefined) return true;
  const [minimum, maximum, step] = [schema.minimum, schema.maximum, schema.multipleOf].map(numberIn);
  // Draft 4 has `exclusiveMinimum: true` beside `minimum`.
  const above = schema.exclusiveMinimum === true ? minimum : numberIn(schema.exclusiveMinimum);
  const below = schema.exclusiveMaximum === true ? maximum : numberIn(schema.exclusiveMaximum);
  return !(minimum !== undefined && number < minimum) && !(maximum !== undefined && number > maximum) &&
    !(above !== undefined && number <= above) && !(below !== undefined && number >= below) &&
    (step === undefined || Number.isInteger(Number((number / step).toPrecision(15))));
}

function checkText(value: Json, schema: JsonObject): boolean {
  const { minLength, maxLength } = schema;
  if (typeof value !== "string" || (minLength === undefined && maxLength === undefined)) return true;
  return isWithin([...value].length, minLength, maxLength);
}

type CheckInner = (schema: Json | undefined, value: Json) => boolean;

function checkArray(value: Json, schema: JsonObject, checkInner: CheckInner): boolean {
  if (!Array.isArray(value)) return true;
  const tuple = [schema.prefixItems, schema.items].find((items) => Array.isArray(items)) ?? [];
  const itemSchema = Array.isArray(schema.items) ? schema.additionalItems : schema.items;
  return isWithin(value.length, schema.minItems, schema.maxItems) &&
    value.every((item, index) => checkInner(index < tuple.length ? tuple[index] : itemSchema, item));
}

function checkObject(value: Json, schema: JsonObject, checkInner: CheckInner): boolean {
  if (!isObject(value)) return true;
  const properties = isObject(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  const names = Object.keys(value);
  return isWithin(names.length, schema.minProperties, schema.maxProperties) &&
    required.every((name) => typeof name === "string" && Object.hasOwn(value, name)) &&
    names.every((name) =>
      checkInner(Object.hasOwn(properties, name) ? properties[name] : schema.additionalProperties, value[name] ?? null)
    );
}

function isWithin(count: number, min: Json | undefined, max: Json | undefined): boolean {
  return count >= (numberIn(min) ?? 0) && count <= (numberIn(max) ?? Infinity);
}
