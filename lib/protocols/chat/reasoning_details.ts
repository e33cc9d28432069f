/**
 * Reads and writes the reasoning in chat messages. Chat has no official member for it: the text is in
 * `reasoning_content`, and `reasoning_details` has each block with its signature, for clients to send back.
 */
import {
  isRedacted,
  readRedacted,
  readSignature,
  redactedSignature,
  signatureBlock,
  writeSignature,
} from "../canonical/signature.ts";
import type { ContentBlock, ContentBlockOf, Signature } from "../canonical/types.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { nonEmptyStringOf, numberOf, objectOf, objectsOf, present, stringOf } from "../members.ts";
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import type { ChatWriteContext } from "./write_parts.ts";

type ReasoningBlock = ContentBlockOf<"reasoning">;

const ANTHROPIC_FORMAT = "anthropic-claude-v1";
const OPENAI_FORMAT = "openai-responses-v1";
const UNKNOWN_FORMAT = "unknown";

/** Issuers of values without an envelope, by the `format` of the entry. Any other format is the name of its issuer. */
const ISSUERS: ReadonlyMap<string, string> = new Map([[ANTHROPIC_FORMAT, "anthropic"], [OPENAI_FORMAT, "openai"]]);

/** The members of an assistant message that have reasoning. */
export const REASONING_MEMBERS = ["reasoning_details", "thinking_blocks", "reasoning_content", "reasoning"] as const;

/** Members of LiteLLM's messages that repeat the reasoning. Its clients send them back with the whole message. */
export const INNER_REASONING_MEMBERS = { provider_specific_fields: new Set(["reasoning_details", "reasoning"]) };

/**
 * Reads the reasoning of an assistant message from the first member that has any; the others repeat it. Entries of
 * unknown types become vendor-specific blocks.
 */
export function readReasoning(message: JsonObject): ContentBlock[] {
  for (const { reasoning_details: entries } of [message, objectOf(message.provider_specific_fields) ?? {}]) {
    const details = Array.isArray(entries) ? readDetails(objectsOf(entries)) : [];
    if (details.length > 0) return details;
  }
  if (Array.isArray(message.thinking_blocks)) {
    const thinking = objectsOf(message.thinking_blocks).flatMap(readThinkingBlock);
    if (thinking.length > 0) return thinking;
  }
  const text = stringOf(message.reasoning_content) || stringOf(message.reasoning);
  return text ? [{ type: "reasoning", text }] : [];
}

/** Writes a block as entries of `reasoning_details` with indices from `index` on. An empty block has no entries. */
export function writeDetails({ text, hidden, signature }: ReasoningBlock, index: number): JsonObject[] {
  if (signature?.issuer === "openai") {
    const members = { data: writeSignature(signature, "openai"), format: OPENAI_FORMAT, id: signature.id };
    return encryptedEntries({ text, hidden }, members, index);
  }
  // An empty native issuer forces an envelope. Only Anthropic's signatures need none.
  const value = signature && writeSignature(signature, signature.issuer === "anthropic" ? "anthropic" : "");
  const common = { format: signature?.issuer === "anthropic" ? ANTHROPIC_FORMAT : UNKNOWN_FORMAT, id: null, index };
  const isOmittedText = signature?.issuer === "anthropic" && !isRedacted(signature);
  if (hidden === true && !isOmittedText) {
    return value === undefined ? [] : [{ type: "reasoning.encrypted", data: value, ...common }];
  }
  if (text === "" && value === undefined) return [];
  return [{ type: "reasoning.text", text, signature: value ?? null, ...common }];
}

/**
 * Returns the entries of a complete block for a stream that already sent its text, in entries of the type
 * `reasoning.text`. Clients join the two and read the format.
 */
export function withoutText(entries: readonly JsonObject[]): JsonObject[] {
  return entries.map((entry) => {
    if (entry.type === "reasoning.encrypted") return entry;
    const { summary: _, ...members } = entry;
    return { ...members, type: "reasoning.text", text: "" };
  });
}

/** Writes an entry with encrypted reasoning, after one with its summary unless the text is hidden. */
function encryptedEntries(
  { text, hidden }: { text: string; hidden: boolean | undefined },
  { data, format, id = null }: { data: string; format: string; id: string | null | undefined },
  index: number,
): JsonObject[] {
  const encrypted = { type: "reasoning.encrypted", data, id, format };
  return hidden === true
    ? [{ ...encrypted, index }]
    : [{ type: "reasoning.summary", summary: text, id, format, index }, { ...encrypted, index: index + 1 }];
}

function readDetails(entries: readonly JsonObject[]): ContentBlock[] {
  const blocks: ContentBlock[] = [];
  // The last entry if it is unsigned: the next entry may have its encrypted part.
  let unsigned: { block: ReasoningBlock; type: Json; id: string | undefined; index: number | undefined } | undefined;
  for (const entry of entries) {
    const id = stringOf(entry.id);
    const index = numberOf(entry.index);
    const previous = unsigned;
    unsigned = undefined;
    switch (entry.type) {
      case "reasoning.text": {
        const piece = signedText(stringOf(entry.text) ?? "", signatureOf(entry));
        // Some clients send back the pieces of a stream instead of joining them.
        const isFurther = previous?.type === entry.type && index !== undefined && previous.index === index;
        const block = isFurther ? previous.block : piece;
        if (isFurther) {
          block.text += piece.text;
          if (piece.signature !== undefined) block.signature = piece.signature;
        } else {
          blocks.push(block);
        }
        if (block.signature === undefined) unsigned = { block, type: entry.type, id, index };
        break;
      }
      case "reasoning.summary": {
        const text = stringOf(entry.summary) ?? "";
        if (previous?.type === entry.type && previous.id === id) {
          previous.block.text += `\n\n${text}`;
          unsigned = previous;
        } else {
          unsigned = { block: { type: "reasoning", text }, type: entry.type, id, index };
          blocks.push(unsigned.block);
        }
        break;
      }
      case "reasoning.encrypted": {
        const signature = signatureOf(entry);
        if (signature === undefined) break;
        if (previous !== undefined && isEncryptedPart(signature, id, previous)) previous.block.signature = signature;
        else blocks.push(signatureBlock(signature));
        break;
      }
      default:
        blocks.push({ type: "vendor_specific", from: "chat", value: entry });
    }
  }
  return blocks.filter((block) => block.type !== "reasoning" || block.text !== "" || block.signature !== undefined);
}

/** True if encrypted reasoning belongs to the unsigned entry before it: OpenAI's texts are summaries. */
export function isEncryptedPart(
  { issuer }: Signature,
  id: string | undefined,
  previous: { type: Json | undefined; id: string | undefined },
): boolean {
  const isSummary = previous.type === "reasoning.summary" || issuer === "openai";
  return isSummary && (previous.id === undefined || id === undefined || previous.id === id);
}

/** Reads an entry of `thinking_blocks`, LiteLLM's form, which is that of Anthropic. */
function readThinkingBlock(block: JsonObject): ReasoningBlock[] {
  if (block.type === "redacted_thinking") return [readRedacted(stringOf(block.data) ?? "")];
  const text = stringOf(block.thinking) ?? "";
  const value = stringOf(block.signature);
  if (value) return [signedText(text, readSignature(value, "anthropic"))];
  return text === "" ? [] : [signedText(text, undefined)];
}

/** Makes a block of text and signature. Without text, Anthropic's signature belongs to omitted thinking. */
function signedText(text: string, signature: Signature | undefined): ReasoningBlock {
  const hidden = text === "" && signature?.issuer === "anthropic";
  return { type: "reasoning", text, ...(hidden && { hidden }), ...present({ signature }) };
}

/** Reads the signature of an entry; returns undefined if it has none. */
export function signatureOf(entry: JsonObject): Signature | undefined {
  const isEncrypted = entry.type === "reasoning.encrypted";
  const value = nonEmptyStringOf(isEncrypted ? entry.data : entry.signature);
  if (value === undefined) return undefined;
  const signature = readSignature(value, issuerOf(entry));
  const { issuer } = signature;
  if (issuer === "anthropic") return isEncrypted ? redactedSignature(issuer, signature.value) : signature;
  return { ...signature, ...present({ id: signature.id ?? stringOf(entry.id) }) };
}

/** Returns the issuer by the format. Without one: only Anthropic signs text, and only OpenAI's ids begin with `rs_`. */
function issuerOf(entry: JsonObject): string {
  const format = stringOf(entry.format) ?? UNKNOWN_FORMAT;
  if (format !== UNKNOWN_FORMAT) return ISSUERS.get(format) ?? format;
  if (entry.type === "reasoning.text") return "anthropic";
  return stringOf(entry.id)?.startsWith("rs_") === true ? "openai" : UNKNOWN_FORMAT;
}

/**
 * Writes the reasoning of an earlier message, for spreading: signed blocks as `reasoning_details` if the upstream reads
 * them, and text as `reasoning_content` if the upstream accepts it. Anything else is added to `dropped`.
 */
export function writePastReasoning(blocks: readonly ContentBlock[], { prompt, target }: ChatWriteContext): JsonObject {
  const { dialect, issuer, dropped } = target;
  const details: JsonObject[] = [];
  const texts: string[] = [];
  for (const block of blocks) {
    if (dialect.reasoningDetails === true && isReadable(block, issuer)) {
      details.push(...writePastBlock(block, details.length));
    } else if (block.type === "reasoning" && block.text !== "" && dialect.unsignedReasoning) {
      texts.push(block.text);
    } else {
      dropped.add(PARAMETER_NAMES[prompt.protocol].signed);
    }
  }
  return {
    ...(texts.length > 0 && { reasoning_content: texts.join("\n\n") }),
    ...(details.length > 0 && { reasoning_details: details }),
  };
}

function isReadable(block: ContentBlock, issuer: WriteTarget["issuer"]): boolean {
  return block.type === "vendor_specific" || (block.type === "reasoning" && block.signature?.issuer === issuer);
}

/** Issuers that are the name of a format, see `ISSUERS`. Their signatures need no envelope. */
const FORMAT_NAME = /^[a-z-]+-v\d+$/;

function writePastBlock(block: ContentBlock, index: number): JsonObject[] {
  if (block.type === "vendor_specific") return objectsOf([block.value]);
  if (block.type !== "reasoning") return [];
  const { signature, text, hidden } = block;
  if (signature === undefined || !FORMAT_NAME.test(signature.issuer)) return writeDetails(block, index);
  const { value: data, issuer: format, id } = signature;
  return encryptedEntries({ text, hidden }, { data, format, id }, index);
}
