/**
 * Reads and writes the signatures of Gemini's parts. A `thoughtSignature` belongs to a text, thought or function call.
 * The canonical form signs only reasoning, so the signature of a text or call becomes a hidden reasoning block, and the
 * id of the signature says whether it belongs to a text or a call.
 *
 * Reasoning of other vendors is in `thoughtSignature`, too. Gemini's clients send signatures back, but not always
 * thoughts: Gemini CLI removes them from the conversation. So the signature of a part contains the reasoning before it.
 * The whole value is base64, because clients in Python and Go decode it.
 */
import { Buffer } from "node:buffer";
import { isObject, type JsonObject, parsePlain, shapes, tryParse } from "../../json/mod.ts";
import { signatureIn } from "../canonical/signature.ts";
import { present } from "../members.ts";
import type { ContentBlockOf } from "../canonical/types.ts";

/** Id of the signature of the following text. */
export const TEXT_SIGNATURE_ID = "text";

/** Id of the signature of the preceding text, which was open when the signature came. */
export const PRECEDING_TEXT_SIGNATURE_ID = "text:end";

/**
 * Placeholder for the missing signature of a call, which another model made or the client lost. Models that check
 * signatures would refuse the conversation without it. https://ai.google.dev/gemini-api/docs/thought-signatures
 */
export const PLACEHOLDER_SIGNATURE = "skip_thought_signature_validator";

/** A block of reasoning. */
export type ReasoningBlock = ContentBlockOf<"reasoning">;

/** The base64 with which every envelope begins. */
const ENVELOPE_START = Buffer.from(shapes.SEAL_PREFIX).toString("base64").slice(0, 10);

/**
 * Placeholders for missing signatures, which no model made. SDKs whose signatures are bytes send their base64.
 * https://ai.google.dev/gemini-api/docs/thought-signatures
 */
const PLACEHOLDERS: ReadonlySet<string> = new Set(
  [PLACEHOLDER_SIGNATURE, "context_engineering_is_the_way_to_go"].flatMap((text) => [text, btoa(text)]),
);

/** Returns blocks of reasoning as one signature, an envelope. */
export function sealReasoning(blocks: readonly ReasoningBlock[]): string {
  const envelope = blocks.map(({ text, hidden, signature }) => ({ text: text || undefined, hidden, signature }));
  return Buffer.from(shapes.SEAL_PREFIX + JSON.stringify(envelope)).toString("base64");
}

/** Returns the blocks in an envelope, or Google's own value; undefined for a placeholder. */
export function readThoughtSignature(value: string): ReasoningBlock[] | string | undefined {
  if (value === "" || PLACEHOLDERS.has(value)) return undefined;
  return value.startsWith(ENVELOPE_START) ? readEnvelope(value) ?? value : value;
}

function readEnvelope(value: string): ReasoningBlock[] | undefined {
  const text = Buffer.from(value, "base64").toString();
  if (!text.startsWith(shapes.SEAL_PREFIX)) return undefined;
  const envelope = tryParse(text.slice(shapes.SEAL_PREFIX.length), parsePlain);
  return Array.isArray(envelope) && envelope.every(isObject) ? envelope.map(readBlock) : undefined;
}

function readBlock({ text, hidden, signature }: JsonObject): ReasoningBlock {
  return {
    type: "reasoning",
    text: typeof text === "string" ? text : "",
    ...(hidden === true && { hidden }),
    ...present({ signature: signatureIn(signature) }),
  };
}
