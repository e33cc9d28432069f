/** Rewrites schemas of tool arguments for vendors that require an object without branches at the top. */
import { isObject, type Json, type JsonObject, subtractWeight, VALUE_WEIGHT, writeJson } from "../../json/mod.ts";
import { listOf } from "../members.ts";
import { mergeSchemas, resolveRef } from "../canonical/json_schema_merge.ts";

/** Limit of followed branches and references. */
const MAX_BRANCHES = 1_000;
/**
 * Limit of the weight of all merged schemas, as `weigh` counts it: about 10 ms. Without it, 80 KB with many references,
 * or with branches that have different members, took seconds and could become gigabytes.
 */
const MAX_WEIGHT = 4_000_000;

interface Walk {
  root: JsonObject;
  branchesLeft: number;
  weightLeft: number;
  /** References being followed. */
  refs: Set<string>;
}

/**
 * Returns a schema with `type: "object"` and `properties`, and without `anyOf`, `oneOf`, `allOf` and `$ref` at its top.
 * OpenAI refuses a schema without `properties`, which tools without arguments often have. The schema allows every
 * object that the given schema allows: it has the members of all branches and requires those that every branch
 * requires. A schema of this form is returned as it is. Constraints beyond the limits are left out.
 */
export function objectSchema(schema: JsonObject): JsonObject {
  if (hasRequiredForm(schema)) return schema;
  const walk = { root: schema, branchesLeft: MAX_BRANCHES, weightLeft: MAX_WEIGHT, refs: new Set<string>() };
  const flat = flatten(schema, walk);
  return { ...flat, type: "object", ...(!isObject(flat.properties) && { properties: {} }) };
}

function hasRequiredForm({ type, properties, anyOf, oneOf, allOf, $ref }: JsonObject): boolean {
  return type === "object" && properties !== undefined &&
    [anyOf, oneOf, allOf, $ref].every((keyword) => keyword === undefined);
}

function flatten(schema: JsonObject, walk: Walk): JsonObject {
  const { anyOf, oneOf, allOf, $ref, ...plain } = schema;
  if (walk.branchesLeft-- <= 0 || !spend(walk, sizeOf(schema))) return plain;
  let flat: JsonObject = plain;
  if (typeof $ref === "string" && !walk.refs.has($ref)) {
    walk.refs.add($ref);
    flat = mergeBranch(flat, resolveRef(walk.root, $ref), walk);
    walk.refs.delete($ref);
  }
  for (const branch of listOf(allOf)) flat = mergeBranch(flat, branch, walk);
  for (const branches of [anyOf, oneOf]) {
    const objects = listOf(branches).filter(allowsObject);
    if (objects.length === 0) continue;
    flat = merge(flat, unionOf(objects.map((branch) => flatten(isObject(branch) ? branch : {}, walk)), walk), walk);
  }
  return flat;
}

function mergeBranch(schema: JsonObject, other: Json | undefined, walk: Walk): JsonObject {
  return isObject(other) ? merge(schema, flatten(other, walk), walk) : schema;
}

/** Merges two schemas; returns only the first one if the merge exceeds the limit. */
function merge(first: JsonObject, second: JsonObject, walk: Walk): JsonObject {
  if (!spend(walk, sizeOf(first) + sizeOf(second))) return first;
  if (first.enum !== undefined && !(spendOn(walk, first.enum) && spendOn(walk, second.enum))) return first;
  const { properties } = second;
  if (isObject(first.properties) && isObject(properties)) {
    for (const name in properties) {
      const isRepeated = Object.hasOwn(first.properties, name) && first.properties[name] !== properties[name];
      if (isRepeated && !spendOn(walk, properties[name])) return first;
    }
  }
  return mergeSchemas(first, second);
}

/** Subtracts a number of values from the remaining weight. @returns false if it is used up */
function spend(walk: Walk, values: number): boolean {
  walk.weightLeft -= values * VALUE_WEIGHT;
  return walk.weightLeft >= 0;
}

/** Subtracts the weight of a schema that is written or repeated. @returns as `spend` */
function spendOn(walk: Walk, schema: Json | undefined): boolean {
  walk.weightLeft = subtractWeight(schema, walk.weightLeft);
  return walk.weightLeft >= 0;
}

/** Returns the number of values that a merge of the schema copies. */
function sizeOf(schema: JsonObject): number {
  const { required, type, properties, allOf, anyOf, oneOf } = schema;
  let size = Object.keys(schema).length + (isObject(properties) ? Object.keys(properties).length : 0);
  for (const values of [required, type, schema.enum, allOf, anyOf, oneOf]) size += listOf(values).length;
  return size;
}

/** Returns a schema that allows every object that one of the schemas allows; a single schema is returned as it is. */
function unionOf(schemas: readonly JsonObject[], walk: Walk): JsonObject {
  const [only = {}, ...others] = schemas;
  if (others.length === 0) return only;
  let required = [...listOf(only.required)];
  let hasProperties = false;
  const members = new Map<string, Json[]>();
  for (const schema of schemas) {
    if (!spend(walk, sizeOf(schema))) return {};
    const names = new Set(listOf(schema.required));
    required = required.filter((name) => names.has(name));
    if (!isObject(schema.properties)) continue;
    hasProperties = true;
    for (const [name, member = true] of Object.entries(schema.properties)) {
      const options = members.get(name);
      if (options === undefined) members.set(name, [member]);
      else options.push(member);
    }
  }
  const properties = Array.from(members, ([name, options]): [string, Json] => [name, unionOfMember(options, walk)]);
  return {
    type: "object",
    ...(hasProperties && { properties: Object.fromEntries(properties) }),
    ...(required.length > 0 && { required }),
    ...(schemas.every(({ additionalProperties }) => additionalProperties === false) && { additionalProperties: false }),
  };
}

/** Returns one schema for a member that has several: `anyOf` without duplicates. */
function unionOfMember(schemas: readonly Json[], walk: Walk): Json {
  const [first = true, ...others] = schemas;
  if (others.length === 0) return first;
  const options = new Map<string, Json>();
  const firstOptions = isObject(first) && Object.keys(first).length === 1 && Array.isArray(first.anyOf)
    ? first.anyOf
    : [first];
  for (const schema of [...firstOptions, ...new Set(others)]) {
    if (!spendOn(walk, schema)) return true;
    const text = writeJson(schema);
    if (!options.has(text)) options.set(text, schema);
  }
  return options.size === 1 ? first : { anyOf: [...options.values()] };
}

function allowsObject(branch: Json): boolean {
  if (!isObject(branch)) return branch === true;
  const { type } = branch;
  return type === undefined || type === "object" || (Array.isArray(type) && type.includes("object"));
}
