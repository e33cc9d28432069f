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

const BLOCKS_PER_STEP = 512;

/**
 * Writes the blocks of one assistant message as parts with their signatures, in steps. The call of a signature is found
 * by id, because chat has no order between reasoning and calls. The signature of a text goes to the nearest unsigned text
 * on its side, else on the other side. Without such a text it is dropped, because it is optional.
 */
function* writeModelParts(
  blocks: readonly ContentBlock[],
  { row, issuer }: WriteTarget,
): Generator<void, JsonObject[]> {
  const parts: JsonObject[] = [];
  const callSignatureById = callSignatures(blocks, issuer);
  const unsignedTexts: JsonObject[] = [];
  /** Signatures of texts that follow. Those before the index `next` are on a text. */
  const waiting: string[] = [];
  let next = 0;
  for (const [index, block] of blocks.entries()) {
    if (index % BLOCKS_PER_STEP === 0) yield;
    switch (block.type) {
      case "text":
      case "refusal": {
        const part: JsonObject = { text: block.text, ...ownMembers(block) };
        const value = waiting[next];
        if (value === undefined) unsignedTexts.push(part);
        else {
          part.thoughtSignature = value;
          next++;
        }
        parts.push(part);
        break;
      }
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
        if (signature?.issuer !== issuer || signature.value === "") break;
        const { id, value } = signature;
        if (id === TEXT_SIGNATURE_ID || id === PRECEDING_TEXT_SIGNATURE_ID) {
          const preceding = id === TEXT_SIGNATURE_ID ? undefined : unsignedTexts.pop();
          if (preceding === undefined) waiting.push(value);
          else preceding.thoughtSignature = value;
        } else if (signedCallId(id) === undefined) parts.push({ text, thought: true, thoughtSignature: value });
        break;
      }
      case "vendor_specific":
        parts.push(block.value);
        break;
    }
  }
  for (const value of waiting.slice(next)) {
    const preceding = unsignedTexts.pop();
    if (preceding !== undefined) preceding.thoughtSignature = value;
  }
  if (row.reasoning?.modes.includes("adaptive") === true) addPlaceholder(parts);
  return parts;
}

/** Signs the first call with a placeholder if it has no signature: models with thinking levels check the first call. */
function addPlaceholder(parts: JsonObject[]): void {
  const call = parts.find(({ functionCall }) => functionCall !== undefined);
  if (call !== undefined && call.thoughtSignature === undefined) call.thoughtSignature = PLACEHOLDER_SIGNATURE;
}
