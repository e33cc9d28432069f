/** Schemas of tool arguments for vendors that require an object without branches at the top. */
import { isObject, type Json, type JsonObject, writeJson } from "../../json/mod.ts";
import { mergeSchemas } from "./json_schema_merge.ts";

/** Limit of followed branches and references. */
const MAX_BRANCHES = 1_000;

interface Walk {
  root: JsonObject;
  /** Branches that may still be followed. */
  left: number;
  /** References being followed. */
  refs: Set<string>;
}

/**
 * Returns a schema with `type: "object"` and without `anyOf`, `oneOf`, `allOf` and `$ref` at its top. It allows every
 * object that the given schema allows: it has the members of all branches and requires those that every branch
 * requires. A schema that has this form already is returned unchanged.
 */
export function objectSchema(schema: JsonObject): JsonObject {
  return isPlain(schema)
    ? schema
    : { ...flatten(schema, { root: schema, left: MAX_BRANCHES, refs: new Set() }), type: "object" };
}

function isPlain({ type, anyOf, oneOf, allOf, $ref }: JsonObject): boolean {
  return type === "object" && [anyOf, oneOf, allOf, $ref].every((keyword) => keyword === undefined);
}

function flatten(schema: JsonObject, walk: Walk): JsonObject {
  const { anyOf, oneOf, allOf, $ref, ...plain } = schema;
  if (walk.left-- <= 0) return plain;
  let flat: JsonObject = plain;
  if (typeof $ref === "string" && !walk.refs.has($ref)) {
    walk.refs.add($ref);
    flat = both(flat, resolve(walk.root, $ref), walk);
    walk.refs.delete($ref);
  }
  for (const branch of list(allOf)) flat = both(flat, branch, walk);
  for (const branches of [anyOf, oneOf]) {
    const objects = list(branches).filter(allowsObject);
    const [first, ...others] = objects.map((branch) => flatten(isObject(branch) ? branch : {}, walk));
    if (first !== undefined) flat = mergeSchemas(flat, others.reduce(either, first));
  }
  return flat;
}

function both(schema: JsonObject, other: Json | undefined, walk: Walk): JsonObject {
  return isObject(other) ? mergeSchemas(schema, flatten(other, walk)) : schema;
}

/** Returns a schema that allows every object of either. */
function either(a: JsonObject, b: JsonObject): JsonObject {
  const required = list(a.required).filter((name) => list(b.required).includes(name));
  const properties = eitherMembers(a.properties, b.properties);
  const closed = a.additionalProperties === false && b.additionalProperties === false;
  return {
    type: "object",
    ...(properties !== undefined && { properties }),
    ...(required.length > 0 && { required }),
    ...(closed && { additionalProperties: false }),
  };
}

function eitherMembers(a: Json | undefined, b: Json | undefined): JsonObject | undefined {
  if (!isObject(a) || !isObject(b)) return isObject(a) ? a : isObject(b) ? b : undefined;
  const members = new Map<string, Json | undefined>(Object.entries(a));
  for (const [name, schema] of Object.entries(b)) {
    const other = members.get(name);
    members.set(name, other === undefined || schema === undefined ? other ?? schema : eitherSchema(other, schema));
  }
  return Object.fromEntries(members);
}

function eitherSchema(a: Json, b: Json): Json {
  const branches = isObject(a) && Object.keys(a).length === 1 && Array.isArray(a.anyOf) ? a.anyOf : [a];
  const known = branches.some((branch) => writeJson(branch) === writeJson(b));
  const all = known ? branches : [...branches, b];
  return all.length === 1 && all[0] !== undefined ? all[0] : { anyOf: all };
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
