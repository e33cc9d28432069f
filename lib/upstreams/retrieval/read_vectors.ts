/** Reads answers with embeddings. Vectors keep their text, so that no number is read and written again. */
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject, parseDocument } from "../../json/mod.ts";
import { dimensionsOf, inFormat, isVector } from "../../retrieval/vectors.ts";
import { runSlicedNow } from "../../scheduler.ts";
import { ANSWER_LIMITS } from "../answers.ts";

/** Requirements of a vector. */
export interface WantedVectors {
  count: number;
  dimensions: number;
  base64: boolean;
}

/** An answer: its vectors, and everything else. */
export interface VectorAnswer {
  /** In the order of the answer. */
  vectors: string[];
  /** The answer with the index of each vector in its place. */
  rest: JsonObject;
}

/**
 * Cuts the vectors out of an answer, and parses the rest.
 * @param member name of the members that hold the vectors
 * @throws {GatewayError} `upstream` for an answer that is no JSON object, or whose vectors are not the wanted ones
 */
export async function readVectors(
  text: string,
  member: "embedding" | "values",
  expected: WantedVectors,
): Promise<VectorAnswer> {
  const { vectors, skeleton } = await runSlicedNow(cutVectors(text, member, expected));
  const rest: Json | undefined = await parseDocument(skeleton, { limits: ANSWER_LIMITS }).then(
    ({ value }) => value,
    () => undefined,
  );
  if (!isObject(rest)) throw unreadable("expected a JSON object");
  return { vectors, rest };
}

/** Checks that there is a vector for each input. @throws {GatewayError} `upstream` */
export function requireVectors({ vectors }: VectorAnswer, { count }: WantedVectors): void {
  if (vectors.length !== count) throw unreadable(`expected ${count} vectors, got ${vectors.length}`);
}

function* cutVectors(
  text: string,
  member: string,
  { dimensions, base64 }: WantedVectors,
): Generator<void, { vectors: string[]; skeleton: string }> {
  // Within a JSON string, the quotes of this pattern would be escaped.
  const start = new RegExp(`"${member}"\\s*:\\s*(?=[["])`, "g");
  const vectors: string[] = [];
  let skeleton = "";
  let copied = 0;
  while (start.test(text)) {
    const from = start.lastIndex;
    const close = text.indexOf(text[from] === "[" ? "]" : '"', from + 1);
    if (close < 0) throw unreadable("a vector has no end");
    const vector = unescaped(text.slice(from, close + 1));
    if (!isVector(vector)) throw unreadable("expected vectors of numbers, or base64 of them");
    const found = dimensionsOf(vector);
    if (found !== dimensions) throw unreadable(`expected vectors of ${dimensions} dimensions, got ${found}`);
    skeleton += text.slice(copied, from) + vectors.length;
    vectors.push(inFormat(vector, base64));
    copied = start.lastIndex = close + 1;
    yield;
  }
  return { vectors, skeleton: skeleton + text.slice(copied) };
}

/** Some hosts write `\/` and `\u002B` in base64. */
function unescaped(vector: string): string {
  if (!vector.includes("\\")) return vector;
  try {
    return JSON.stringify(JSON.parse(vector));
  } catch {
    return vector;
  }
}

/** The error for an answer that cannot be used. Another target may answer better. */
export function unreadable(why: string): GatewayError {
  return new GatewayError("upstream", `Cannot read the upstream's answer: ${why}`);
}
