/** A check: one claim about a gateway that is right or wrong by what it sends. */
import type { z } from "zod";
import type { SuiteContext } from "./suite_context.ts";

/** Parts of the suite, which can be run one by one. */
export const SUITE_PARTS = ["models", "chat", "responses", "messages", "images", "embeddings", "rerank"] as const;

/** A part of the suite. */
export type SuitePart = typeof SUITE_PARTS[number];

/** A claim and the function that tries it. */
export interface Check {
  /** Such as `chat.stream.done`. */
  id: string;
  part: SuitePart;
  /** The claim, as a sentence. */
  title: string;
  /** Consequence for clients where it does not hold. */
  why: string;
  /** True if the model must follow instructions; any instructed model does. */
  instructed?: true;
  run: CheckFunction;
}

/** Tries a claim: returns a note or nothing. @throws {Mismatch} if it fails @throws {Skip} if it cannot be tried */
export type CheckFunction = (context: SuiteContext) => Promise<string | void>;

/** Checks by their ids within one part. */
export type Checks = Readonly<Record<string, CheckFunction>>;

/** A check that failed: what should have come, and what did. */
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

/** A check that cannot be tried here; the message says why. */
export class Skip extends Error {
  override readonly name = "Skip";
}

/** Fails the check unless the condition holds. `seen` is shown as JSON, cut to a line. */
export function must(condition: boolean, { expected, seen }: { expected: string; seen: unknown }): asserts condition {
  if (!condition) throw new Mismatch(expected, show(seen));
}

/** The value in the form of the schema. @throws {Mismatch} for the first member that is not in it */
export function shaped<T>(schema: z.ZodType<T>, value: unknown, where = "the body"): T {
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const path = issue?.path.map(String).join(".") ?? "";
  const place = path === "" ? where : `${where}: ${path}`;
  const at = issue?.path.reduce<unknown>((inner, key) => Object(inner)[key], value);
  throw new Mismatch(`${place} to be right (${issue?.message ?? "form"})`, show(at));
}

/** Longest text of a value that is shown, in characters. */
const SHOWN = 200;

/** A value in one line. */
export function show(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const line = text.replaceAll(/\s+/g, " ");
  return line.length > SHOWN ? `${line.slice(0, SHOWN)}…` : line;
}
