import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import type { ContentBlock, ContentBlockOf, Prompt } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { objectOf, ownMembers } from "./members.ts";
import { writeMedia } from "./write_media.ts";
import { writeArgs } from "./write_function_responses.ts";
import { signedCallId, TEXT, TEXT_BEFORE, UNSIGNED } from "./signatures.ts";

/** A signature of a text part, and its position among the parts. */
interface TextSignature {
  value: string;
  at: number;
  /** True if the text precedes the signature. */
  before: boolean;
}

/**
 * Writes the blocks of one assistant message as parts with their signatures. Signatures find their calls by id, because
 * chat has no order between reasoning and calls.
 */
export function writeModelParts(
  blocks: readonly ContentBlock[],
  { prompt, target }: { prompt: Prompt; target: WriteTarget },
): JsonObject[] {
  const parts: JsonObject[] = [];
  const ofText: TextSignature[] = [];
  const ofCalls = callSignatures(blocks, target.issuer);
  for (const block of blocks) {
    if (block.cache !== undefined) target.dropped.add("cache_control");
    switch (block.type) {
      case "text":
      case "refusal":
        if (block.text !== "") parts.push({ text: block.text, ...ownMembers(block.unknownMembers) });
        break;
      case "media":
        parts.push({ ...writeMedia(block.media), ...ownMembers(block.unknownMembers) });
        break;
      case "tool_call": {
        const value = ofCalls.get(block.id);
        const { functionCall: ofCall, ...others } = ownMembers(block.unknownMembers);
        const functionCall = { id: block.id, name: block.name, args: writeArgs(block), ...objectOf(ofCall) };
        parts.push({ functionCall, ...(value !== undefined && { thoughtSignature: value }), ...others });
        break;
      }
      case "reasoning": {
        const { signature, text } = block;
        // The model ignores thoughts without a signature.
        if (!isSigned(block, target.issuer) || signature === undefined) break;
        const { id, value } = signature;
        if (id === TEXT || id === TEXT_BEFORE) ofText.push({ value, at: parts.length, before: id === TEXT_BEFORE });
        else if (signedCallId(id) === undefined) parts.push({ text, thought: true, thoughtSignature: value });
        break;
      }
      case "vendor_specific":
        if (block.from === "gemini") parts.push(block.value);
        else target.dropped.add(PARAMETER_NAMES[prompt.protocol].messages);
        break;
    }
  }
  for (const signature of ofText) signText(parts, signature);
  if (target.row.reasoning?.modes.includes("adaptive") === true) passUnsigned(parts);
  return parts;
}

function isSigned({ signature }: ContentBlockOf<"reasoning">, issuer: string): boolean {
  return signature?.issuer === issuer && signature.value !== "";
}

function callSignatures(blocks: readonly ContentBlock[], issuer: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const block of blocks) {
    if (block.type !== "reasoning" || !isSigned(block, issuer)) continue;
    const callId = signedCallId(block.signature?.id);
    if (callId !== undefined && block.signature !== undefined) values.set(callId, block.signature.value);
  }
  return values;
}

/**
 * Attaches a signature to the nearest unsigned text on its own side, else on the other, because a client without an
 * order may have moved it. Without an unsigned text it is dropped: text signatures are optional.
 */
function signText(parts: JsonObject[], { value, at, before }: TextSignature): void {
  const isFree = ({ text, thought, thoughtSignature }: JsonObject) =>
    text !== undefined && thought === undefined && thoughtSignature === undefined;
  const earlier = parts.slice(0, at).findLast(isFree);
  const later = parts.slice(at).find(isFree);
  const part = before ? earlier ?? later : later ?? earlier;
  if (part !== undefined) part.thoughtSignature = value;
}

/** Of parallel calls the first is signed. Models with thinking levels check it. */
function passUnsigned(parts: JsonObject[]): void {
  const call = parts.find(({ functionCall }) => functionCall !== undefined);
  if (call !== undefined && call.thoughtSignature === undefined) call.thoughtSignature = UNSIGNED;
}
