/**
 * Signatures beside calls: Google's OpenAI-compatible endpoint signs a model's calls, and refuses a conversation in which a
 * signature is missing. In the canonical form only reasoning is signed, so a call's signature is a hidden reasoning block
 * before it, whose signature id names the call. https://ai.google.dev/gemini-api/docs/thought-signatures
 */
import type { ContentBlock, Signature } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { objectOf, stringOf } from "../members.ts";

const CALL = "call:";

/** The signature beside a call, if it has one. */
export function readCallSignature(
  entry: JsonObject,
  { callId, issuer }: { callId: string; issuer: string },
): Signature | undefined {
  const value = stringOf(objectOf(objectOf(entry.extra_content)?.google)?.thought_signature);
  return value ? { issuer, value, id: CALL + callId } : undefined;
}

/** Parts a turn's blocks: signatures by the ids of their calls, and all the others. Those of other issuers stay there. */
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

/** A call with its signature beside it: for spreading. */
export function writeCallSignature(signature: string | undefined): JsonObject {
  return signature === undefined ? {} : { extra_content: { google: { thought_signature: signature } } };
}
