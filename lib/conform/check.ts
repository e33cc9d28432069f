/** The types of checks, each of which decides one claim about a gateway, and the helpers that they are made of. */
import type { z } from "zod";
import type { SuiteContext } from "./suite_context.ts";
import { issueText } from "../issue_text.ts";

/** The parts that are text protocols. */
export const TEXT_PARTS = ["chat", "responses", "messages", "gemini"] as const;

/** Parts of the suite, which can be run separately. */
export const SUITE_PARTS = ["models", ...TEXT_PARTS, "images", "embeddings", "rerank"] as const;

/** A part of the suite. */
export type SuitePart = typeof SUITE_PARTS[number];

/** A text protocol. */
export type TextPart = typeof TEXT_PARTS[number];

/** A claim and the function that checks it. */
export interface Check {
  /** Id of the check, such as `chat.stream.done`. */
  id: string;
  part: SuitePart;
  /** The claim, as a sentence. */
  title: string;
  /** Why the claim matters to clients. */
  why: string;
  /** True if the check needs a model that follows instructions; absent: no. */
  instructed?: true;
  run: CheckFunction;
}

/** Runs a check, and may return a note. @throws {Mismatch} if the check fails @throws {Skip} if it does not apply */
export type CheckFunction = (context: SuiteContext) => Promise<string | void>;

/** Checks of a part by their ids, without the name of the part. */
export type Checks = Readonly<Record<string, CheckFunction>>;

/** A check failed. */
export class Mismatch extends Error {
  override readonly name = "Mismatch";
  readonly expected: string;
  readonly seen: string;

  constructor(expected: string, seen: string) {
    super(`expected ${expected}, saw ${seen}`);
    this.expected = expected;
    this.seen = seen;
  }
}

/** A check does not apply. The message is the reason. */
export class Skip extends Error {
  override readonly name = "Skip";
}

/**
 * Requires a condition.
 * @param expected ends the sentence "expected …"
 * @throws {Mismatch} if it is false, with `seen` as JSON, shortened to one line
 */
export function expectThat(condition: boolean, expected: string, seen: unknown): asserts condition {
  if (!condition) throw new Mismatch(expected, show(seen));
}

/**
 * Parses a value by a schema.
 * @param where name of the value in messages
 * @throws {Mismatch} for the first invalid member
 */
export function shaped<T>(schema: z.ZodType<T>, value: unknown, where = "the body"): T {
  const parsed = schema.safeParse(value, { error: issueText });
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const path = issue?.path.map(String).join(".") ?? "";
  const location = path === "" ? where : `${where}: ${path}`;
  const member = issue?.path.reduce<unknown>((inner, key) => Object(inner)[key], value);
  throw new Mismatch(`${location} to be right (${issue?.message ?? "form"})`, show(member));
}

/** Longest formatted value, in characters. */
const MAX_SHOWN_CHARACTERS = 200;

/** Formats a value in one line. */
export function show(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const line = text.replaceAll(/\s+/g, " ");
  return line.length > MAX_SHOWN_CHARACTERS ? `${line.slice(0, MAX_SHOWN_CHARACTERS)}…` : line;
}
