/** Words the problem that a zod schema finds in a value, for people. The texts name types, never the value itself. */
import type { z } from "zod";
import { isRawNumber } from "./json/mod.ts";

const TYPES: Readonly<Record<string, string>> = {
  object: "an object",
  record: "an object",
  array: "an array",
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
};

/** Returns the name of a type, such as `an array`. */
export function typeText(type: string): string {
  return TYPES[type] ?? type;
}

/**
 * Returns the message of an issue; `undefined` if zod's own is used. This is the option `error` of `safeParse`: the
 * `error` of a schema takes precedence.
 */
export function issueText(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      return `Expected ${typeText(issue.expected)}${unexpected(issue)}`;
    case "invalid_value":
      return valuesText(issue.values);
    case "too_small":
      return `Expected at least ${issue.minimum}${unitText(issue.origin, issue.minimum)}`;
    case "too_big":
      return `Expected at most ${issue.maximum}${unitText(issue.origin, issue.maximum)}`;
    case "invalid_union":
      // A union of objects that differ in one member has the values of that member as options.
      return Array.isArray(issue.options) ? valuesText(issue.options) : unionText(issue.errors);
  }
  return undefined;
}

function valuesText(values: readonly unknown[]): string {
  return `Expected ${values.length > 1 ? "one of " : ""}${values.map((value) => JSON.stringify(value)).join(", ")}`;
}

/** Returns what the options of a union expect; `undefined` if an option accepts the type of the value. */
function unionText(options: readonly (readonly z.core.$ZodIssue[])[]): string | undefined {
  const expected = options.map(([first]) =>
    first?.path.length === 0 ? /^Expected (.+?)(?:, not an? \w+)?$/.exec(first.message)?.[1] : undefined
  );
  return expected.length === 0 || expected.includes(undefined) ? undefined : `Expected ${expected.join(", or ")}`;
}

function unexpected({ expected, input }: z.core.$ZodRawIssue & { expected: string }): string {
  if (isRawNumber(input)) return expected === "number" ? " that a 64-bit float holds exactly" : ", not a number";
  if (input === null) return ", not null";
  if (Array.isArray(input)) return ", not an array";
  const type = typeof input;
  return expected === "int" && type === "number" ? "" : `, not ${type === "boolean" ? "a boolean" : typeText(type)}`;
}

function unitText(origin: string, count: number | bigint): string {
  if (origin !== "string" && origin !== "array") return "";
  const unit = origin === "string" ? " character" : " item";
  return count === 1 ? unit : `${unit}s`;
}
