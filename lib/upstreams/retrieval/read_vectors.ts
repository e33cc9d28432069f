/** Reads answers with embeddings. Vectors stay text, so that numbers are not parsed and written again. */
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject, parseDocument } from "../../json/mod.ts";
import { dimensionsOf, inFormat, isVector } from "../../retrieval/vectors.ts";
import { runSlicedNow } from "../../scheduler.ts";
import { ANSWER_LIMITS } from "../answers.ts";

/** The vectors that an answer must have. */
export interface WantedVectors {
  count: number;
  dimensions: number;
  /** True for base64, false for lists of numbers. Vectors of the other form are converted. */
  base64: boolean;
}

/**
 * Cuts the vectors out of an answer, and parses the rest.
 * @param member name of the members that contain the vectors
 * @returns the vectors as JSON text, in the order of the answer; and the answer, in which each vector is replaced by its
 * index in `vectors`
 * @throws {GatewayError} `upstream` if the answer is not a JSON object, or its vectors are not as wanted
 */
export async function readVectors(
  text: string,
  member: "embedding" | "values",
  expected: WantedVectors,
): Promise<{ vectors: string[]; rest: JsonObject }> {
  const { vectors, skeleton } = await runSlicedNow(cutVectors(text, member, expected));
  const rest: Json | undefined = await parseDocument(skeleton, { limits: ANSWER_LIMITS }).then(
    ({ value }) => value,
    () => undefined,
  );
  if (!isObject(rest)) throw unreadableAnswer("expected a JSON object");
  const { count } = expected;
  if (vectors.length !== count) throw unreadableAnswer(`expected ${count} vectors, got ${vectors.length}`);
  return { vectors, rest };
}

function* cutVectors(
  text: string,
  member: string,
  { count, dimensions, base64 }: WantedVectors,
): Generator<void, { vectors: string[]; skeleton: string }> {
  // This cannot match inside a JSON string, where the quotes would be escaped.
  const start = new RegExp(`"${member}"\\s*:\\s*(?=[["])`, "g");
  const vectors: string[] = [];
  let skeleton = "";
  let copied = 0;
  while (start.test(text)) {
    if (vectors.length === count) throw unreadableAnswer(`expected ${count} vectors, got more`);
    const from = start.lastIndex;
    const close = text.indexOf(text[from] === "[" ? "]" : '"', from + 1);
    if (close < 0) throw unreadableAnswer("a vector has no end");
    const vector = unescaped(text.slice(from, close + 1));
    // The length comes first, because the pattern of a vector of millions of numbers exceeds the stack.
    const actual = dimensionsOf(vector);
    if (actual !== dimensions) throw unreadableAnswer(`expected vectors of ${dimensions} dimensions, got ${actual}`);
    if (!isVector(vector)) throw unreadableAnswer("expected vectors of numbers, or base64 of them");
    skeleton += text.slice(copied, from) + vectors.length;
    vectors.push(inFormat(vector, base64));
    copied = start.lastIndex = close + 1;
    yield;
  }
  return { vectors, skeleton: skeleton + text.slice(copied) };
}

/** Removes escapes from base64: some hosts write `\/` and `\u002B`. */
function unescaped(vector: string): string {
  if (!vector.includes("\\")) return vector;
  try {
    return JSON.stringify(JSON.parse(vector));
  } catch {
    return vector;
  }
}

/** Returns the error for an answer that cannot be used. Another target may be tried after it. */
export function unreadableAnswer(why: string): GatewayError {
  return new GatewayError("upstream", `Cannot read the upstream's answer: ${why}`);
}
