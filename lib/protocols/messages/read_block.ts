/** Reads the content blocks of an answer from the messages protocol. */
import { redactedSignature } from "../canonical/signature.ts";
import { parseObject } from "../canonical/tool_input.ts";
import type { BlockSequence } from "../canonical/block_serializer.ts";
import type { Signature } from "../canonical/types.ts";
import { isObject, type Json, type JsonObject, writeJson } from "../../json/mod.ts";
import type { PrewrittenJson } from "../codec.ts";

/** The parts of an answer that the reader of a block needs. */
export interface BlockContext {
  /** The issuer of signatures. */
  issuer: string;
  /** As `Origin.texts`. */
  texts?: PrewrittenJson;
  callId(): string;
  /** Counts text that is kept in memory, in characters. */
  keep(length: number): void;
}

/** Reads one block. */
export interface BlockReader {
  /** Reads a delta. @returns false for a delta that does not belong to a block of this type */
  delta(delta: JsonObject): boolean;
  stop(): void;
}

/**
 * Creates the reader of a block.
 * @param start the block as its start has it
 * @returns undefined for an invalid block, such as a call without a name
 */
export function readBlock(start: JsonObject, sequence: BlockSequence, context: BlockContext): BlockReader | undefined {
  switch (start.type) {
    case "text":
      return readText(start, sequence);
    case "thinking":
      return readThinking(start, sequence, context);
    case "redacted_thinking":
      return readRedacted(start, sequence, context);
    case "tool_use":
      return readToolUse(start, sequence, context);
    default:
      return typeof start.type === "string" ? readVendorSpecific(start, sequence, context) : undefined;
  }
}

/** Reads text. The block opens with its first characters, because some upstreams begin blocks that stay empty. */
function readText(start: JsonObject, sequence: BlockSequence): BlockReader {
  function open(): void {
    if (!sequence.isOpen) sequence.open({ type: "text" });
  }

  function write(text: Json | undefined): void {
    if (typeof text !== "string" || text === "") return;
    open();
    sequence.delta(text);
  }

  function cite(value: Json | undefined): void {
    if (!isObject(value)) return;
    open();
    sequence.citation({ from: "messages", value });
  }

  write(start.text);
  if (Array.isArray(start.citations)) start.citations.forEach(cite);
  return {
    delta({ type, text, citation }) {
      if (type === "text_delta") write(text);
      else if (type === "citations_delta") cite(citation);
      else return false;
      return true;
    },
    stop: () => sequence.end(),
  };
}

/** Reads thinking. The block opens with its text. If it only has a signature, its text was withheld. */
function readThinking(start: JsonObject, sequence: BlockSequence, { issuer, keep }: BlockContext): BlockReader {
  let signature: Signature | undefined;

  function write(text: Json | undefined): void {
    if (typeof text !== "string" || text === "") return;
    if (!sequence.isOpen) sequence.open({ type: "reasoning" });
    sequence.delta(text);
  }

  /** A later signature replaces an earlier one. */
  function setSignature(value: Json | undefined): void {
    if (typeof value !== "string" || value === "") return;
    keep(value.length);
    signature = { issuer, value };
  }

  write(start.thinking);
  setSignature(start.signature);
  return {
    delta({ type, thinking, signature }) {
      if (type === "thinking_delta") write(thinking);
      else if (type === "signature_delta") setSignature(signature);
      else return false;
      return true;
    },
    stop() {
      if (!sequence.isOpen && signature !== undefined) sequence.open({ type: "reasoning", hidden: true });
      sequence.end(signature);
    },
  };
}

function readRedacted({ data }: JsonObject, sequence: BlockSequence, { issuer }: BlockContext): BlockReader {
  const signature = typeof data === "string" && data !== "" ? redactedSignature(issuer, data) : undefined;
  if (signature !== undefined) sequence.open({ type: "reasoning", hidden: true });
  return { delta: () => false, stop: () => sequence.end(signature) };
}

/** Reads a call. Its input comes in pieces; servers that do not stream it put it into the start of the block. */
function readToolUse(
  start: JsonObject,
  sequence: BlockSequence,
  { callId, keep, texts }: BlockContext,
): BlockReader | undefined {
  const { id, name, input } = start;
  if (typeof name !== "string" || name === "") return undefined;
  const startInput = isObject(input) && Object.keys(input).length > 0 ? texts?.get(input) ?? writeJson(input) : "";
  keep(startInput.length);
  let hasInput = false;
  sequence.open({ type: "tool_call", id: typeof id === "string" && id !== "" ? id : callId(), name });
  return {
    delta({ type, partial_json }) {
      if (type !== "input_json_delta") return false;
      if (typeof partial_json !== "string" || (!hasInput && partial_json.trim() === "")) return true;
      hasInput = true;
      sequence.delta(partial_json);
      return true;
    },
    stop() {
      if (!hasInput) sequence.delta(startInput);
      sequence.end();
    },
  };
}

/** Reads a vendor-specific block. It is kept as it is, so it opens only when it is complete. */
function readVendorSpecific(start: JsonObject, sequence: BlockSequence, { keep }: BlockContext): BlockReader {
  const pieces: string[] = [];
  const block = { ...start };
  keep(writeJson(start).length);
  return {
    delta({ type, partial_json, content }) {
      if (type !== "input_json_delta" && type !== "compaction_delta") return false;
      const piece = type === "input_json_delta" ? partial_json : content;
      if (typeof piece !== "string") return true;
      keep(piece.length);
      pieces.push(piece);
      return true;
    },
    stop() {
      const text = pieces.join("");
      if (block.type === "compaction" && text !== "") block.content = text;
      else if (text.trim() !== "") block.input = parseObject(text) ?? { _raw: text };
      sequence.open({ type: "vendor_specific", from: "messages", value: block });
      sequence.end();
    },
  };
}
