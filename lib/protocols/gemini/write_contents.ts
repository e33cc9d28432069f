/** Writes the system instruction and the contents of a Gemini request. */
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import type { ContentBlock, ContentBlockOf, Message, Prompt } from "../canonical/types.ts";
import { ownMembers } from "../canonical/unknown_members.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { objectOf } from "../members.ts";
import { writeMedia } from "./write_media.ts";
import { writeResponse } from "./write_function_responses.ts";
import { callSignatures, signedCallId } from "../canonical/signature.ts";
import { inputOf } from "../canonical/tool_input.ts";
import { PLACEHOLDER_SIGNATURE, PRECEDING_TEXT_SIGNATURE_ID, TEXT_SIGNATURE_ID } from "./signatures.ts";

/** A content as it is written. */
type WrittenContent = { role: "user" | "model"; parts: JsonObject[] };

/**
 * Writes the messages, in steps. Leading system messages are the instruction; the others alternate between `user` and
 * `model`. Later system messages become user text in `<system>` tags.
 */
export function* writeContents(
  prompt: Prompt,
  target: WriteTarget,
): Generator<void, { system: JsonObject[]; contents: JsonObject[] }> {
  const first = prompt.messages.findIndex(({ role }) => role !== "system");
  const leading = first < 0 ? prompt.messages.length : first;
  const system: JsonObject[] = [];
  const context: WriteContext = { prompt, target, names: new Map() };
  for (const { blocks } of prompt.messages.slice(0, leading)) system.push(...yield* writeUserParts(blocks, context));

  const contents: WrittenContent[] = [];
  for (const message of prompt.messages.slice(leading)) {
    const parts = yield* writeParts(message, context);
    const role = message.role === "assistant" ? "model" : "user";
    const last = contents.at(-1);
    if (last?.role === role) last.parts.push(...parts);
    else contents.push({ role, parts });
  }
  return { system, contents };
}

interface WriteContext {
  prompt: Prompt;
  target: WriteTarget;
  /** Names of called tools by call id, because a result needs the name, too. */
  names: Map<string, string>;
}

function* writeParts({ role, blocks }: Message, context: WriteContext): Generator<void, JsonObject[]> {
  if (role === "user") return yield* writeUserParts(blocks, context);
  if (role === "system") {
    return (yield* writeUserParts(blocks, context)).map((part) =>
      typeof part.text === "string" ? { text: `<system>\n${part.text}\n</system>` } : part
    );
  }
  for (const block of blocks) {
    if (block.type === "tool_call") context.names.set(block.id, block.name);
  }
  return yield* writeModelParts(blocks, context.target);
}

function* writeUserParts(blocks: readonly ContentBlock[], context: WriteContext): Generator<void, JsonObject[]> {
  const parts: JsonObject[] = [];
  for (const [index, block] of blocks.entries()) {
    if (index % BLOCKS_PER_STEP === 0) yield;
    parts.push(writeUserPart(block, context));
  }
  return parts;
}

function writeUserPart(block: ContentBlock, context: WriteContext): JsonObject {
  const { prompt, target: { dropped } } = context;
  switch (block.type) {
    case "text":
    case "refusal":
      return { text: block.text, ...ownMembers(block) };
    case "media":
      if (block.name !== undefined) dropped.add(PARAMETER_NAMES[prompt.protocol].fileName);
      return { ...writeMedia(block.media), ...ownMembers(block) };
    case "tool_result":
      return writeResult(block, context);
    case "vendor_specific":
      return block.value;
    default:
      throw new TypeError(`Cannot write a block of type "${block.type}" as content of the user`);
  }
}

function writeResult(block: ContentBlockOf<"tool_result">, { names }: WriteContext): JsonObject {
  const name = names.get(block.callId) ?? "";
  const { functionResponse, ...others } = ownMembers(block);
  return {
    functionResponse: { id: block.callId, name, ...writeResponse(block), ...objectOf(functionResponse) },
    ...others,
  };
}

/** Blocks of a message written in one step. */
const BLOCKS_PER_STEP = 512;

interface TextSignature {
  value: string;
  /** Number of parts before the signature. */
  position: number;
  /** True if the text is before the signature. */
  isAfterText: boolean;
}

/**
 * Writes the blocks of one assistant message as parts with their signatures, in steps. The call of a signature is found
 * by id, because chat has no order between reasoning and calls.
 */
function* writeModelParts(
  blocks: readonly ContentBlock[],
  { row, issuer }: WriteTarget,
): Generator<void, JsonObject[]> {
  const parts: JsonObject[] = [];
  const textSignatures: TextSignature[] = [];
  const callSignatureById = callSignatures(blocks, issuer);
  for (const [index, block] of blocks.entries()) {
    if (index % BLOCKS_PER_STEP === 0) yield;
    switch (block.type) {
      case "text":
      case "refusal":
        parts.push({ text: block.text, ...ownMembers(block) });
        break;
      case "media":
        parts.push({ ...writeMedia(block.media), ...ownMembers(block) });
        break;
      case "tool_call": {
        const value = callSignatureById.get(block.id);
        const { functionCall: callMembers, ...others } = ownMembers(block);
        const functionCall = { id: block.id, name: block.name, args: inputOf(block), ...objectOf(callMembers) };
        parts.push({ functionCall, ...(value !== undefined && { thoughtSignature: value }), ...others });
        break;
      }
      case "reasoning": {
        const { signature, text } = block;
        // The model ignores thoughts without a signature.
        if (!isSigned(block, issuer) || signature === undefined) break;
        const { id, value } = signature;
        if (id === TEXT_SIGNATURE_ID || id === PRECEDING_TEXT_SIGNATURE_ID) {
          textSignatures.push({ value, position: parts.length, isAfterText: id === PRECEDING_TEXT_SIGNATURE_ID });
        } else if (signedCallId(id) === undefined) parts.push({ text, thought: true, thoughtSignature: value });
        break;
      }
      case "vendor_specific":
        parts.push(block.value);
        break;
    }
  }
  if (textSignatures.length > 0) signTexts(parts, textSignatures);
  if (row.reasoning?.modes.includes("adaptive") === true) addPlaceholder(parts);
  return parts;
}

function isSigned({ signature }: ContentBlockOf<"reasoning">, issuer: string): boolean {
  return signature?.issuer === issuer && signature.value !== "";
}

/**
 * Attaches each signature to the nearest unsigned text on its side, else on the other side: the client's protocol may
 * have no order between text and reasoning. A signature without an unsigned text is dropped, because it is optional.
 */
function signTexts(parts: readonly JsonObject[], signatures: readonly TextSignature[]): void {
  // For each part, an index at or beyond which the next unsigned text is, so that no part is searched twice.
  const leftIndices = parts.map((_, index) => index);
  const rightIndices = parts.map((_, index) => index);
  for (const { value, position, isAfterText } of signatures) {
    const left = nearestUnsigned(parts, leftIndices, { from: position - 1, step: -1 });
    const right = nearestUnsigned(parts, rightIndices, { from: position, step: 1 });
    const part = isAfterText ? left ?? right : right ?? left;
    if (part !== undefined) part.thoughtSignature = value;
  }
}

/** Returns the nearest unsigned text in a direction. Sets the index of all parts on the way in `indices` to it. */
function nearestUnsigned(
  parts: readonly JsonObject[],
  indices: number[],
  { from, step }: { from: number; step: 1 | -1 },
): JsonObject | undefined {
  let index = from;
  while (index >= 0 && index < parts.length && !isUnsignedText(parts[index])) index = nextIndex(indices, index, step);
  for (let passed = from; passed !== index;) {
    const following = nextIndex(indices, passed, step);
    indices[passed] = index;
    passed = following;
  }
  return parts[index];
}

function nextIndex(indices: readonly number[], index: number, step: 1 | -1): number {
  const known = indices[index] ?? index;
  return known === index ? index + step : known;
}

function isUnsignedText(part: JsonObject | undefined): boolean {
  return part?.text !== undefined && part.thought === undefined && part.thoughtSignature === undefined;
}

/** Signs the first call with a placeholder if it has no signature: models with thinking levels check the first call. */
function addPlaceholder(parts: JsonObject[]): void {
  const call = parts.find(({ functionCall }) => functionCall !== undefined);
  if (call !== undefined && call.thoughtSignature === undefined) call.thoughtSignature = PLACEHOLDER_SIGNATURE;
}
