/** A check: one claim about a gateway, decided by the bytes it sends. */
import type { z } from "zod";
import type { SuiteContext } from "./suite_context.ts";

/** Parts of the suite, which can be run separately. */
export const SUITE_PARTS = [
  ...["models", "chat", "responses", "messages", "gemini", "images", "embeddings", "rerank"] as const,
] as const;

/** A part of the suite. */
export type SuitePart = typeof SUITE_PARTS[number];

/** The parts that are text protocols. */
export const TEXT_PARTS = ["chat", "responses", "messages", "gemini"] as const satisfies readonly SuitePart[];

/** A text protocol. */
export type TextPart = typeof TEXT_PARTS[number];

/** A claim and the function that checks it. */
export interface Check {
  /** Such as `chat.stream.done`. */
  id: string;
  part: SuitePart;
  /** The claim, as a sentence. */
  title: string;
  /** Consequence for clients if it is false. */
  why: string;
  /** True if the check needs a model that follows instructions. */
  instructed?: true;
  run: CheckFunction;
}

/** Runs a check; may return a note. @throws {Mismatch} if it fails @throws {Skip} if it does not apply */
export type CheckFunction = (context: SuiteContext) => Promise<string | void>;

/** Checks of one part, by id. */
export type Checks = Readonly<Record<string, CheckFunction>>;

/** A failed check: the expected and the received. */
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

/** A check that does not apply; the message is the reason. */
export class Skip extends Error {
  override readonly name = "Skip";
}

/** Fails the check unless the condition holds. `seen` is printed as JSON, cut to one line. */
export function expectThat(
  condition: boolean,
  { expected, seen }: { expected: string; seen: unknown },
): asserts condition {
  if (!condition) throw new Mismatch(expected, show(seen));
}

/** Parses a value by a schema. @throws {Mismatch} for the first invalid member */
export function shaped<T>(schema: z.ZodType<T>, value: unknown, where = "the body"): T {
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const path = issue?.path.map(String).join(".") ?? "";
  const location = path === "" ? where : `${where}: ${path}`;
  const at = issue?.path.reduce<unknown>((inner, key) => Object(inner)[key], value);
  throw new Mismatch(`${location} to be right (${issue?.message ?? "form"})`, show(at));
}

/** Longest printed value, in characters. */
const SHOWN = 200;

/** Prints a value in one line. */
export function show(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const line = text.replaceAll(/\s+/g, " ");
  return line.length > SHOWN ? `${line.slice(0, SHOWN)}…` : line;
}
