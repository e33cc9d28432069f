/**
 * Signatures of Gemini's parts. A `thoughtSignature` belongs to a text, thought or function call. The canonical form
 * signs only reasoning, so a signature of another part becomes a hidden reasoning block, whose signature id names the
 * part.
 *
 * Reasoning of other vendors travels in `thoughtSignature`, too. Gemini's clients send signatures back, but not always
 * thoughts: Gemini CLI removes them from the conversation. So the signature of a part carries the reasoning before it. It
 * is base64 on the outside as well, because clients in Python and Go decode it.
 */
import { Buffer } from "node:buffer";
import { isObject, type JsonObject, parsePlain, shapes } from "../../json/mod.ts";
import type { ContentBlockOf, Signature } from "../canonical/types.ts";

/** Id of a signature of the following text. */
export const TEXT = "text";

/** Id of a signature of the preceding text, which was already open. */
export const TEXT_BEFORE = "text:end";

/**
 * Placeholder for a missing signature of a call (made by another model, or lost by the client): models that check
 * signatures would refuse the conversation. https://ai.google.dev/gemini-api/docs/thought-signatures
 */
export const UNSIGNED = "skip_thought_signature_validator";

/** A block of reasoning. */
export type ReasoningBlock = ContentBlockOf<"reasoning">;

/** The issuer of signatures without an envelope. */
export const NATIVE = "google";

/** The characters of base64 that the prefix of every envelope begins with. */
const START = Buffer.from(shapes.SEAL_PREFIX).toString("base64").slice(0, 10);

/**
 * Placeholders for missing signatures, which no model made.
 * https://ai.google.dev/gemini-api/docs/thought-signatures
 */
const PLACEHOLDERS: ReadonlySet<string> = new Set([UNSIGNED, "context_engineering_is_the_way_to_go"]);

/** Writes blocks of reasoning as one signature. */
export function sealReasoning(blocks: readonly ReasoningBlock[]): string {
  const sealed = blocks.map(({ text, hidden, signature }) => ({
    ...(text !== "" && { text }),
    ...(hidden === true && { hidden }),
    ...(signature !== undefined && { signature }),
  }));
  return Buffer.from(shapes.SEAL_PREFIX + JSON.stringify(sealed)).toString("base64");
}

/** Reads a signature: the blocks in it, or Google's own value; `undefined` for a placeholder. */
export function readThoughtSignature(value: string): ReasoningBlock[] | string | undefined {
  if (value === "" || PLACEHOLDERS.has(value)) return undefined;
  return value.startsWith(START) ? unseal(value) ?? value : value;
}

function unseal(value: string): ReasoningBlock[] | undefined {
  const text = Buffer.from(value, "base64").toString();
  if (!text.startsWith(shapes.SEAL_PREFIX)) return undefined;
  let sealed: unknown;
  try {
    sealed = parsePlain(text.slice(shapes.SEAL_PREFIX.length));
  } catch {
    return undefined;
  }
  return Array.isArray(sealed) && sealed.every(isObject) ? sealed.map(readBlock) : undefined;
}

function readBlock({ text, hidden, signature }: JsonObject): ReasoningBlock {
  const read = isObject(signature) ? readSignature(signature) : undefined;
  return {
    type: "reasoning",
    text: typeof text === "string" ? text : "",
    ...(hidden === true && { hidden }),
    ...(read !== undefined && { signature: read }),
  };
}

function readSignature({ issuer, value, id }: JsonObject): Signature | undefined {
  if (typeof issuer !== "string" || typeof value !== "string") return undefined;
  return typeof id === "string" ? { issuer, value, id } : { issuer, value };
}
