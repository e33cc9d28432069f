/**
 * Reasoning inside chat messages. Chat has no official member for it: the text travels in `reasoning_content`, and
 * `reasoning_details` has each block with its signature, for clients to send back.
 */
import { readSignature, REDACTED_ID, writeSignature } from "../canonical/signature.ts";
import type { ContentBlock, ContentBlockOf, Signature } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { objectsOf, present, stringOf } from "../members.ts";
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import type { ChatWriteContext } from "./write_parts.ts";

type ReasoningBlock = ContentBlockOf<"reasoning">;

const ANTHROPIC = "anthropic-claude-v1";
const OPENAI = "openai-responses-v1";
const UNKNOWN = "unknown";

/** Issuers of values without an envelope, by the `format` of the entry. Any other format is its own issuer. */
const ISSUERS: ReadonlyMap<string, string> = new Map([[ANTHROPIC, "anthropic"], [OPENAI, "openai"]]);

/** Members of an assistant message with reasoning. */
export const REASONING_MEMBERS = ["reasoning_details", "thinking_blocks", "reasoning_content", "reasoning"] as const;

/**
 * Reads the reasoning of an assistant message from the first member that has any; the others repeat it. Other entries
 * become vendor-specific blocks.
 */
export function readReasoning(message: JsonObject): ContentBlock[] {
  if (Array.isArray(message.reasoning_details)) {
    const details = readDetails(objectsOf(message.reasoning_details));
    if (details.length > 0) return details;
  }
  if (Array.isArray(message.thinking_blocks)) {
    const thinking = objectsOf(message.thinking_blocks).flatMap(readThinkingBlock);
    if (thinking.length > 0) return thinking;
  }
  const text = stringOf(message.reasoning_content) || stringOf(message.reasoning);
  return text ? [{ type: "reasoning", text }] : [];
}

/** Writes a block as entries of `reasoning_details` from `index` on. An empty block has none. */
export function writeDetails({ text, hidden, signature }: ReasoningBlock, index: number): JsonObject[] {
  if (signature?.issuer === "openai") {
    const members = { data: writeSignature(signature, "openai"), format: OPENAI, id: signature.id };
    return sealedEntries({ text, hidden }, members, index);
  }
  // An empty issuer forces an envelope, for every issuer but Anthropic.
  const value = signature && writeSignature(signature, signature.issuer === "anthropic" ? "anthropic" : "");
  const common = { format: signature?.issuer === "anthropic" ? ANTHROPIC : UNKNOWN, id: null, index };
  const omitted = signature?.issuer === "anthropic" && signature.id !== REDACTED_ID;
  if (hidden === true && !omitted) {
    return value === undefined ? [] : [{ type: "reasoning.encrypted", data: value, ...common }];
  }
  if (text === "" && value === undefined) return [];
  return [{ type: "reasoning.text", text, signature: value ?? null, ...common }];
}

/** Writes a summary, unless the text is hidden, and its encrypted part. */
function sealedEntries(
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
  // A summary whose encrypted part may follow in the next entry.
  let summary: { block: ReasoningBlock; id: string | undefined } | undefined;
  for (const entry of entries) {
    const id = stringOf(entry.id);
    const before = summary;
    summary = undefined;
    switch (entry.type) {
      case "reasoning.text": {
        const signature = stringOf(entry.signature);
        const block = signedText(stringOf(entry.text) ?? "", signature ? sign(signature, entry) : undefined);
        if (block.text !== "" || block.signature !== undefined) blocks.push(block);
        break;
      }
      case "reasoning.summary": {
        const text = stringOf(entry.summary) ?? "";
        if (before !== undefined && before.id === id) {
          before.block.text += `\n\n${text}`;
          summary = before;
        } else {
          summary = { block: { type: "reasoning", text }, id };
          blocks.push(summary.block);
        }
        break;
      }
      case "reasoning.encrypted": {
        const signature = redacted(sign(stringOf(entry.data) ?? "", entry));
        const isSameDetail = before?.id === undefined || id === undefined || before.id === id;
        if (before !== undefined && isSameDetail) before.block.signature = signature;
        else blocks.push({ type: "reasoning", text: "", hidden: true, signature });
        break;
      }
      default:
        blocks.push({ type: "vendor_specific", from: "chat", value: entry });
    }
  }
  return blocks;
}

/** LiteLLM's form, which is Anthropic's own. */
function readThinkingBlock(block: JsonObject): ReasoningBlock[] {
  if (block.type === "redacted_thinking") {
    const signature = redacted(readSignature(stringOf(block.data) ?? "", "anthropic"));
    return [{ type: "reasoning", text: "", hidden: true, signature }];
  }
  const text = stringOf(block.thinking) ?? "";
  const value = stringOf(block.signature);
  if (value) return [signedText(text, readSignature(value, "anthropic"))];
  return text === "" ? [] : [signedText(text, undefined)];
}

/** Anthropic's signature without a text belongs to omitted thinking. */
function signedText(text: string, signature: Signature | undefined): ReasoningBlock {
  const hidden = text === "" && signature?.issuer === "anthropic";
  return { type: "reasoning", text, ...(hidden && { hidden }), ...present({ signature }) };
}

function redacted(signature: Signature): Signature {
  return signature.issuer === "anthropic" ? { ...signature, id: REDACTED_ID } : signature;
}

/** Reads the signature of an entry, if it has one. */
export function signatureOf(entry: JsonObject): Signature | undefined {
  const value = stringOf(entry.type === "reasoning.encrypted" ? entry.data : entry.signature);
  if (!value) return undefined;
  return entry.type === "reasoning.encrypted" ? redacted(sign(value, entry)) : sign(value, entry);
}

function sign(value: string, entry: JsonObject): Signature {
  const signature = readSignature(value, issuerOf(entry));
  const id = stringOf(entry.id);
  const takesId = signature.issuer !== "anthropic" && signature.id === undefined && id !== undefined;
  return takesId ? { ...signature, id } : signature;
}

/** Without a format the shape decides: only Anthropic signs text, and only OpenAI's ids begin with `rs_`. */
function issuerOf(entry: JsonObject): string {
  const format = stringOf(entry.format) ?? UNKNOWN;
  if (format !== UNKNOWN) return ISSUERS.get(format) ?? format;
  if (entry.type === "reasoning.text") return "anthropic";
  return stringOf(entry.id)?.startsWith("rs_") === true ? "openai" : UNKNOWN;
}

/**
 * Writes reasoning of an earlier message, for spreading: signed blocks as `reasoning_details` if the upstream reads
 * them, plain text as `reasoning_content` if it wants it back. Anything else is named.
 */
export function writePastReasoning(blocks: readonly ContentBlock[], { prompt, target }: ChatWriteContext): JsonObject {
  const { dialect, issuer, dropped } = target;
  const details: JsonObject[] = [];
  const texts: string[] = [];
  for (const block of blocks) {
    if (dialect.reasoningDetails === true && isReadable(block, issuer)) {
      details.push(...writeDetail(block, { index: details.length }));
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

/** Formats that name an issuer, see `readReasoning`; such signatures go back without an envelope. */
const FORMAT = /^[a-z-]+-v\d+$/;

function writeDetail(block: ContentBlock, { index }: { index: number }): JsonObject[] {
  if (block.type === "vendor_specific") return objectsOf([block.value]);
  if (block.type !== "reasoning") return [];
  const { signature, text, hidden } = block;
  if (signature === undefined || !FORMAT.test(signature.issuer)) return writeDetails(block, index);
  return sealedEntries({ text, hidden }, { data: signature.value, format: signature.issuer, id: signature.id }, index);
}
