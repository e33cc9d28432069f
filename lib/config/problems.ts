/** Words the problems that a schema finds in a configuration: one line each, with the path of the member. */
import { z } from "zod";
import { issueText, typeText } from "../issue_text.ts";
import { isObject, type Json, type JsonObject } from "../json/mod.ts";

/** Path of a member: names and indices from the root. */
export type Path = readonly PropertyKey[];

/** Objects with more members than this are described without their members. */
const MAX_LISTED_MEMBERS = 4;

/** Formats a path, such as `models[1].pricing.prompt`. Names that are not identifiers are quoted: `groups["a b"]`. */
export function pathText(path: Path): string {
  let text = "";
  for (const part of path) text += memberText(part, text === "");
  return text;
}

/** Formats one part of a path. */
export function memberText(part: PropertyKey, isFirst: boolean): string {
  if (typeof part === "number") return `[${part}]`;
  const name = String(part);
  if (!/^[A-Za-z_$][A-Za-z0-9_$-]*$/.test(name)) return `[${JSON.stringify(name)}]`;
  return isFirst ? name : `.${name}`;
}

/** Formats a problem as a line that begins with the path. */
export function formatProblem(path: Path, message: string): string {
  return path.length === 0 ? message : `${pathText(path)}: ${message}`;
}

/** JSON Schemas by the schema that they describe: to make that of the configuration takes longer than to check a file. */
const shapes = new WeakMap<z.ZodType, JsonObject>();

/** Returns a line for each problem that a schema found in a value, in order. */
export function schemaProblems(schema: z.ZodType, error: z.ZodError, value: unknown): string[] {
  const shape = shapes.get(schema) ?? z.toJSONSchema(schema, { io: "input" }) as JsonObject;
  shapes.set(schema, shape);
  // At most one line per member and kind of problem: zod reports a number that is too large twice.
  const lines = new Map<string, string>();
  for (const issue of error.issues) {
    for (const [path, message] of explain(issue, shape, value)) {
      lines.set(`${pathText(path)} ${issue.code}`, formatProblem(path, message));
    }
  }
  return [...lines.values()];
}

function explain(issue: z.core.$ZodIssue, shape: JsonObject, root: unknown): [Path, string][] {
  const { path } = issue;
  const actual = valueAt(root, path);
  const schema = schemaAt(shape, { path, value: root });
  if (actual === undefined && issue.code !== "unrecognized_keys") {
    const about = schema?.description;
    return [[path, typeof about === "string" ? `Missing (${about})` : "Missing"]];
  }
  switch (issue.code) {
    case "unrecognized_keys":
      return issue.keys.map((
        key,
      ) => [[...path, key], `Unknown member; expected one of: ${membersOf(schema, actual).join(", ")}`]);
    case "invalid_type":
      return [[path, `Expected ${typeAndMembers(issue.expected, schema)}, not ${showOther(actual, issue.expected)}`]];
    case "invalid_value":
      return [[path, `Expected one of ${issue.values.map(show).join(", ")}, not ${show(actual)}`]];
    case "invalid_union":
      return [[path, `Expected one of ${issueOptions(issue).map(show).join(", ")}, not ${show(actual)}`]];
    case "invalid_key":
      return [[path, issue.issues[0]?.message ?? issue.message]];
    case "too_small":
    case "too_big":
      return [[path, `${issueText({ ...issue, input: actual })}, not ${sizeOf(actual)}`]];
    default:
      return [[path, mayBeSecret(path) ? issue.message : `${issue.message}, not ${show(actual)}`]];
  }
}

/** Returns the name of a type. For a small object, such as `{ "env": "NAME" }`, it also names the members. */
function typeAndMembers(expected: string, schema: JsonObject | undefined): string {
  const text = typeText(expected);
  const isOne = schema?.oneOf === undefined && schema?.anyOf === undefined;
  const members = expected === "object" && isOne ? membersOf(schema, undefined) : [];
  return members.length === 0 || members.length > MAX_LISTED_MEMBERS ? text : `${text} with ${members.join(", ")}`;
}

/**
 * Returns whether the value at a path may be a secret, which must not be printed: a key in place of a variable's name,
 * or an address with a password.
 */
function mayBeSecret(path: Path): boolean {
  return path.at(-1) === "env" || path.length === 1 && (path[0] === "store" || path[0] === "limits_store");
}

/** Returns the values that select the options of a discriminated union. */
function issueOptions(issue: z.core.$ZodIssueInvalidUnion): unknown[] {
  return "options" in issue && Array.isArray(issue.options) ? issue.options : [];
}

function sizeOf(value: unknown): string {
  return typeof value === "string" || Array.isArray(value) ? String(value.length) : show(value);
}

/**
 * Formats an unexpected value. A string in place of an object may be a secret, so only its type is shown. A number in
 * place of a string, a frequent mistake in prices, only lacks its quotes.
 */
function showOther(value: unknown, expected: string): string {
  if (expected === "string" && typeof value === "number") return `${show(value)} without quotes`;
  return expected === "object" && typeof value === "string" ? "a string" : show(value);
}

function show(value: unknown): string {
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object" && value !== null) return "an object";
  const text = JSON.stringify(value) ?? "nothing";
  return text.length <= 80 ? text : `${text.slice(0, 77)}…"`;
}

function valueAt(root: unknown, path: Path): unknown {
  let value = root;
  for (const part of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) return undefined;
    value = Reflect.get(value, part);
  }
  return value;
}

/** Returns the part of a JSON Schema that describes the member at a path; `undefined` if there is none. */
function schemaAt(root: JsonObject, { path, value }: { path: Path; value: unknown }): JsonObject | undefined {
  let schema: Json | undefined = root;
  path.forEach((part, depth) => {
    if (!isObject(schema)) return;
    const parent = optionFor(schema, valueAt(value, path.slice(0, depth)));
    if (typeof part === "number") schema = parent.items;
    else if (isObject(parent.properties)) schema = parent.properties[String(part)];
    else schema = parent.additionalProperties;
  });
  return isObject(schema) ? schema : undefined;
}

/**
 * Returns the option of a union that the value selects by its constant members, such as `vendor`; otherwise the first
 * option, or the schema itself if it is no union.
 */
function optionFor(schema: JsonObject, value: unknown): JsonObject {
  const options = [schema.oneOf, schema.anyOf].flat().filter(isObject)
    .filter((option) => option.properties ?? option.items ?? option.additionalProperties);
  return options.findLast((option) => isSelected(option, value)) ?? options[0] ?? schema;
}

/** Returns whether the value has no member that contradicts a constant or an enum of the option. */
function isSelected({ properties }: JsonObject, value: unknown): boolean {
  if (!isObject(properties) || !isObject(value)) return false;
  return Object.entries(properties).every(([name, property]) => {
    if (!isObject(property) || value[name] === undefined) return true;
    const allowed = property.const !== undefined ? [property.const] : property.enum;
    return !Array.isArray(allowed) || allowed.some((option) => option === value[name]);
  });
}

function membersOf(schema: JsonObject | undefined, value: unknown): string[] {
  const { properties } = optionFor(schema ?? {}, value);
  return isObject(properties) ? Object.keys(properties) : [];
}
