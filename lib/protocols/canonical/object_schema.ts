/** Schemas of tool arguments for vendors that require an object without branches at the top. */
import { isObject, type Json, type JsonObject, VALUE_WEIGHT, weigh, writeJson } from "../../json/mod.ts";
import { mergeSchemas } from "./json_schema_merge.ts";

/** Limit of followed branches and references. */
const MAX_BRANCHES = 1_000;
/**
 * Limit of all merged schemas, as a weight in JSON: about 10 ms. Without it, 80 KB with many references, or with
 * branches of which each has other members, took seconds, and could become gigabytes.
 */
const MAX_WEIGHT = 4_000_000;

interface Walk {
  root: JsonObject;
  /** Branches that may still be followed. */
  budget: number;
  /** Weight that may still be merged. */
  weight: number;
  /** References being followed. */
  refs: Set<string>;
}

/**
 * Returns a schema with `type: "object"` and without `anyOf`, `oneOf`, `allOf` and `$ref` at its top. It allows every
 * object that the given schema allows: it has the members of all branches and requires those that every branch
 * requires. A schema that has this form already is returned unchanged. Of a schema beyond the limits, it leaves out
 * constraints.
 */
export function objectSchema(schema: JsonObject): JsonObject {
  return isPlain(schema) ? schema : {
    ...flatten(schema, { root: schema, budget: MAX_BRANCHES, weight: MAX_WEIGHT, refs: new Set() }),
    type: "object",
  };
}

function isPlain({ type, anyOf, oneOf, allOf, $ref }: JsonObject): boolean {
  return type === "object" && [anyOf, oneOf, allOf, $ref].every((keyword) => keyword === undefined);
}

function flatten(schema: JsonObject, walk: Walk): JsonObject {
  const { anyOf, oneOf, allOf, $ref, ...plain } = schema;
  if (walk.budget-- <= 0 || !spend(walk, sizeOf(schema))) return plain;
  let flat: JsonObject = plain;
  if (typeof $ref === "string" && !walk.refs.has($ref)) {
    walk.refs.add($ref);
    flat = both(flat, resolve(walk.root, $ref), walk);
    walk.refs.delete($ref);
  }
  for (const branch of list(allOf)) flat = both(flat, branch, walk);
  for (const branches of [anyOf, oneOf]) {
    const objects = list(branches).filter(allowsObject);
    if (objects.length === 0) continue;
    flat = merge(flat, either(objects.map((branch) => flatten(isObject(branch) ? branch : {}, walk)), walk), walk);
  }
  return flat;
}

function both(schema: JsonObject, other: Json | undefined, walk: Walk): JsonObject {
  return isObject(other) ? merge(schema, flatten(other, walk), walk) : schema;
}

/** Merges two schemas; returns the first one if that exceeds the limit. */
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

/** Takes a number of values from the weight that is left. @returns false if there is not enough */
function spend(walk: Walk, values: number): boolean {
  walk.weight -= values * VALUE_WEIGHT;
  return walk.weight >= 0;
}

/** Takes the weight of a schema that is written or repeated. @returns as `spend` */
function spendOn(walk: Walk, schema: Json | undefined): boolean {
  walk.weight = weigh(schema, walk.weight);
  return walk.weight >= 0;
}

/** Number of values that a merge of the schema copies. */
function sizeOf(schema: JsonObject): number {
  const { required, type, properties, allOf, anyOf, oneOf } = schema;
  let size = Object.keys(schema).length + (isObject(properties) ? Object.keys(properties).length : 0);
  for (const values of [required, type, schema.enum, allOf, anyOf, oneOf]) size += list(values).length;
  return size;
}

/** Returns a schema that allows every object of any of the schemas; of one, the same schema. */
function either(schemas: readonly JsonObject[], walk: Walk): JsonObject {
  const [only = {}, ...others] = schemas;
  if (others.length === 0) return only;
  let required = list(only.required);
  let hasProperties = false;
  const members = new Map<string, Json[]>();
  for (const schema of schemas) {
    if (!spend(walk, sizeOf(schema))) return {};
    const names = new Set(list(schema.required));
    required = required.filter((name) => names.has(name));
    if (!isObject(schema.properties)) continue;
    hasProperties = true;
    for (const [name, member = true] of Object.entries(schema.properties)) {
      const options = members.get(name);
      if (options === undefined) members.set(name, [member]);
      else options.push(member);
    }
  }
  const properties = Array.from(members, ([name, options]): [string, Json] => [name, eitherMember(options, walk)]);
  return {
    type: "object",
    ...(hasProperties && { properties: Object.fromEntries(properties) }),
    ...(required.length > 0 && { required }),
    ...(schemas.every(({ additionalProperties }) => additionalProperties === false) && { additionalProperties: false }),
  };
}

/** Returns one schema for a member that has several, each once. */
function eitherMember(schemas: readonly Json[], walk: Walk): Json {
  const [first = true, ...others] = schemas;
  if (others.length === 0) return first;
  const options = new Map<string, Json>();
  const known = isObject(first) && Object.keys(first).length === 1 && Array.isArray(first.anyOf)
    ? first.anyOf
    : [first];
  for (const schema of [...known, ...new Set(others)]) {
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

/** Resolves a reference inside the schema. */
function resolve(root: JsonObject, ref: string): Json | undefined {
  if (!ref.startsWith("#/")) return undefined;
  let at: Json | undefined = root;
  for (const part of ref.slice(2).split("/")) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    at = isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  return at;
}

function list(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}
