/**
 * Reasoning inside chat messages. Chat has no official member for it: the text travels in `reasoning_content`, and
 * `reasoning_details` has each block with its signature, for clients to send back.
 */
import { readSignature, writeSignature } from "../canonical/signature.ts";
import type { ContentBlock, ContentBlockOf, Signature } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { objectsOf, present, stringOf } from "../members.ts";

type ReasoningBlock = ContentBlockOf<"reasoning">;

const ANTHROPIC = "anthropic-claude-v1";
const OPENAI = "openai-responses-v1";
const UNKNOWN = "unknown";

/**
 * Signature id of a `redacted_thinking` block, which Anthropic wants back as a block of that type. Its other signatures
 * belong to text, even if the text was omitted.
 */
const REDACTED = "redacted";

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
    const common = { id: signature.id ?? null, format: OPENAI };
    const encrypted = { type: "reasoning.encrypted", data: writeSignature(signature, "openai"), ...common };
    return hidden === true
      ? [{ ...encrypted, index }]
      : [{ type: "reasoning.summary", summary: text, ...common, index }, { ...encrypted, index: index + 1 }];
  }
  // An empty issuer forces an envelope, for every issuer but Anthropic.
  const value = signature && writeSignature(signature, signature.issuer === "anthropic" ? "anthropic" : "");
  const common = { format: signature?.issuer === "anthropic" ? ANTHROPIC : UNKNOWN, id: null, index };
  const omitted = signature?.issuer === "anthropic" && signature.id !== REDACTED;
  if (hidden === true && !omitted) {
    return value === undefined ? [] : [{ type: "reasoning.encrypted", data: value, ...common }];
  }
  if (text === "" && value === undefined) return [];
  return [{ type: "reasoning.text", text, signature: value ?? null, ...common }];
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
        const together = before?.id === undefined || id === undefined || before.id === id;
        if (before !== undefined && together) before.block.signature = signature;
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
  return signature.issuer === "anthropic" ? { ...signature, id: REDACTED } : signature;
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
