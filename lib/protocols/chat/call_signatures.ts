/**
 * Signatures of tool calls. Google's OpenAI-compatible endpoint signs calls and refuses a conversation without these
 * signatures. The canonical form signs only reasoning, so the signature becomes a hidden reasoning block before the
 * call, and its id names the call. https://ai.google.dev/gemini-api/docs/thought-signatures
 */
import type { ContentBlock, Signature } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { objectOf, stringOf } from "../members.ts";

const CALL = "call:";

/** Reads the signature of a call, if it has one. */
export function readCallSignature(
  entry: JsonObject,
  { callId, issuer }: { callId: string; issuer: string },
): Signature | undefined {
  const value = stringOf(objectOf(objectOf(entry.extra_content)?.google)?.thought_signature);
  return value ? { issuer, value, id: CALL + callId } : undefined;
}

/**
 * Separates the signatures of calls, by call id, from the other blocks. Signatures of other issuers stay among the
 * blocks.
 */
export function separateCallSignatures(
  blocks: readonly ContentBlock[],
  issuer: string,
): { signatures: ReadonlyMap<string, string>; others: ContentBlock[] } {
  const ids = new Set(blocks.flatMap((block) => block.type === "tool_call" ? [CALL + block.id] : []));
  const signatures = new Map<string, string>();
  const others = blocks.filter((block) => {
    const signature = block.type === "reasoning" ? block.signature : undefined;
    if (signature?.id === undefined || signature.issuer !== issuer || !ids.has(signature.id)) return true;
    signatures.set(signature.id.slice(CALL.length), signature.value);
    return false;
  });
  return { signatures, others };
}

/** Writes the signature of a call, for spreading. */
export function writeCallSignature(signature: string | undefined): JsonObject {
  return signature === undefined ? {} : { extra_content: { google: { thought_signature: signature } } };
}
