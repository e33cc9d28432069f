import { callSignatures, signedCallId } from "../canonical/signature.ts";
import { inputOf } from "../canonical/tool_input.ts";
import type { ContentBlock, ContentBlockOf } from "../canonical/types.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { objectOf } from "../members.ts";
import { writeMedia } from "./write_media.ts";
import { TEXT, TEXT_BEFORE, UNSIGNED } from "./signatures.ts";

/** Blocks of a message written in one step. */
export const BLOCKS_AT_ONCE = 512;

/** A signature of a text part, and its position among the parts. */
interface TextSignature {
  value: string;
  at: number;
  /** True if the text precedes the signature. */
  before: boolean;
}

/**
 * Writes the blocks of one assistant message as parts with their signatures, in steps. Signatures find their calls by id, because
 * chat has no order between reasoning and calls.
 */
export function* writeModelParts(
  blocks: readonly ContentBlock[],
  { row, issuer }: WriteTarget,
): Generator<void, JsonObject[]> {
  const parts: JsonObject[] = [];
  const ofText: TextSignature[] = [];
  const ofCalls = callSignatures(blocks, issuer);
  for (const [index, block] of blocks.entries()) {
    if (index % BLOCKS_AT_ONCE === 0) yield;
    switch (block.type) {
      case "text":
      case "refusal":
        parts.push({ text: block.text, ...ownMembers(block) });
        break;
      case "media":
        parts.push({ ...writeMedia(block.media), ...ownMembers(block) });
        break;
      case "tool_call": {
        const value = ofCalls.get(block.id);
        const { functionCall: ofCall, ...others } = ownMembers(block);
        const functionCall = { id: block.id, name: block.name, args: inputOf(block), ...objectOf(ofCall) };
        parts.push({ functionCall, ...(value !== undefined && { thoughtSignature: value }), ...others });
        break;
      }
      case "reasoning": {
        const { signature, text } = block;
        // The model ignores thoughts without a signature.
        if (!isSigned(block, issuer) || signature === undefined) break;
        const { id, value } = signature;
        if (id === TEXT || id === TEXT_BEFORE) ofText.push({ value, at: parts.length, before: id === TEXT_BEFORE });
        else if (signedCallId(id) === undefined) parts.push({ text, thought: true, thoughtSignature: value });
        break;
      }
      case "vendor_specific":
        parts.push(block.value);
        break;
    }
  }
  if (ofText.length > 0) signTexts(parts, ofText);
  if (row.reasoning?.modes.includes("adaptive") === true) passUnsigned(parts);
  return parts;
}

function isSigned({ signature }: ContentBlockOf<"reasoning">, issuer: string): boolean {
  return signature?.issuer === issuer && signature.value !== "";
}

/**
 * Attaches each signature to the nearest unsigned text on its own side, else on the other, because a client without an
 * order may have moved it. Without an unsigned text it is dropped: text signatures are optional.
 */
function signTexts(parts: readonly JsonObject[], signatures: readonly TextSignature[]): void {
  // The nearest places up to and from each part that may still have an unsigned text: none is searched twice.
  const earlier = parts.map((_, at) => at);
  const later = parts.map((_, at) => at);
  for (const { value, at, before } of signatures) {
    const left = nearestFree(parts, earlier, { from: at - 1, step: -1 });
    const right = nearestFree(parts, later, { from: at, step: 1 });
    const part = before ? left ?? right : right ?? left;
    if (part !== undefined) part.thoughtSignature = value;
  }
}

/** Returns the nearest unsigned text in a direction, and notes in `places` where it is for the parts on the way. */
function nearestFree(
  parts: readonly JsonObject[],
  places: number[],
  { from, step }: { from: number; step: 1 | -1 },
): JsonObject | undefined {
  let at = from;
  while (at >= 0 && at < parts.length && !isFree(parts[at])) at = next(places, at, step);
  for (let passed = from; passed !== at;) {
    const following = next(places, passed, step);
    places[passed] = at;
    passed = following;
  }
  return parts[at];
}

function next(places: readonly number[], at: number, step: 1 | -1): number {
  const known = places[at] ?? at;
  return known === at ? at + step : known;
}

function isFree(part: JsonObject | undefined): boolean {
  return part?.text !== undefined && part.thought === undefined && part.thoughtSignature === undefined;
}

/** Of parallel calls the first is signed. Models with thinking levels check it. */
function passUnsigned(parts: JsonObject[]): void {
  const call = parts.find(({ functionCall }) => functionCall !== undefined);
  if (call !== undefined && call.thoughtSignature === undefined) call.thoughtSignature = UNSIGNED;
}
