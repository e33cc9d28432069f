/** Turns the events of an answer into the deltas of chat chunks. */
import { countCodePoints } from "../canonical/citations.ts";
import { withCallSignature } from "../canonical/signature.ts";
import type { Citation, OpenBlock, ReplyEvent, Signature } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { ResponseContext } from "../codec.ts";
import { present } from "../members.ts";
import { withoutText, writeDetails } from "./reasoning_details.ts";
import { hidesReasoning, keepCallSignature, writeAnnotation, writeReasoningText } from "./write_reply.ts";
import { usesLegacyFunctions } from "./read_tools.ts";

/** Writes the deltas of one message. */
export interface DeltaWriter {
  /** Returns the deltas for an event between the start and the end of the answer. */
  push(event: Exclude<ReplyEvent, { type: "finish" | "error" | "logprobs" }>): JsonObject[];
  /** Returns the last delta, which is sent with the finish reason, and the deltas before it. */
  finish(): { before: JsonObject[]; last: JsonObject };
}

interface OpenBlockState {
  block: OpenBlock;
  hasDelta: boolean;
  texts: string[];
  citations: Citation[];
  /** Start of the block in the content, in code points. */
  start: number;
}

/** Creates the writer of one message's deltas. */
export function deltaWriter(context: ResponseContext): DeltaWriter {
  const legacy = usesLegacyFunctions(context.request);
  const hidesText = hidesReasoning(context);
  // Lists are sent in one piece, in the last delta: clients keep only the last list of a stream, or join lists wrongly.
  // Those of OpenRouter show the text of each detail, so they get it in pieces.
  const streamsDetails = context.prompt.openRouter === true;
  const details: JsonObject[] = [];
  const annotations: JsonObject[] = [];
  /** Signatures of calls that follow, by call id. */
  const callSignatures = new Map<string, string>();
  let current: OpenBlockState | undefined;
  let roleSent = false;
  /** True if the content was sent as null, and no text, call or refusal has followed. */
  let needsContent = false;
  let reasoningSent = false;
  let calls = 0;
  /** Length of the content so far, in code points. */
  let length = 0;

  /** Returns the first delta, with the role and the beginning of the content; nothing if it was sent already. */
  function roleDelta(content: string | null): JsonObject[] {
    if (roleSent) return [];
    roleSent = true;
    return [{ role: "assistant", content, refusal: null }];
  }

  function callDelta(entry: JsonObject): JsonObject[] {
    if (!legacy) return [{ tool_calls: [{ index: calls - 1, ...entry }] }];
    // A message with `function_call` can have only one call.
    return calls === 1 && entry.function !== undefined ? [{ function_call: entry.function }] : [];
  }

  function callText(text: string, custom: boolean | undefined): JsonObject[] {
    return callDelta(custom === true ? { custom: { input: text } } : { function: { arguments: text } });
  }

  function open(block: OpenBlock): JsonObject[] {
    current = { block, hasDelta: false, texts: [], citations: [], start: length };
    if (block.type !== "tool_call") return [];
    const { id, name, custom } = block;
    calls++;
    needsContent = false;
    const entry = custom === true
      ? { id, type: "custom", custom: { name, input: "" } }
      : { id, type: "function", function: { name, arguments: "" } };
    return [...roleDelta(null), ...callDelta(withCallSignature(entry, callSignatures.get(id)))];
  }

  function reasoningDeltas(text: string, { texts, hasDelta }: OpenBlockState): JsonObject[] {
    if (hidesText) return [];
    if (!roleSent) needsContent = true;
    const gap = reasoningSent && !hasDelta ? "\n\n" : "";
    reasoningSent = true;
    texts.push(text);
    const piece = streamsDetails && { reasoning_details: [{ type: "reasoning.text", text, index: details.length }] };
    return [...roleDelta(null), { ...writeReasoningText(gap + text, context), ...piece }];
  }

  function text(piece: string, open: OpenBlockState): JsonObject[] {
    switch (open.block.type) {
      case "text":
        needsContent = false;
        length += countCodePoints(piece);
        return [...roleDelta(""), { content: piece }];
      case "refusal":
        needsContent = false;
        return [...roleDelta(null), { refusal: piece }];
      case "reasoning":
        return reasoningDeltas(piece, open);
      case "tool_call":
        return callText(piece, open.block.custom);
      case "vendor_specific":
        return [];
    }
  }

  /** Returns the delta with the signature of reasoning whose text was streamed. */
  function detailDelta(entries: JsonObject[], hasText: boolean): JsonObject[] {
    if (!streamsDetails || entries.length === 0) return [];
    if (!roleSent) needsContent = true;
    return [...roleDelta(null), { reasoning_details: hasText ? withoutText(entries) : entries }];
  }

  function close(
    { block, hasDelta, texts, citations, start }: OpenBlockState,
    signature: Signature | undefined,
  ): JsonObject[] {
    if (block.type === "reasoning") {
      const entries = writeDetails({ ...block, text: texts.join(""), ...present({ signature }) }, details.length);
      details.push(...entries);
      keepCallSignature(signature, callSignatures);
      return detailDelta(entries, texts.length > 0);
    }
    for (const citation of citations) {
      const annotation = writeAnnotation(citation, { start, end: length });
      if (annotation !== undefined) annotations.push(annotation);
    }
    return block.type === "tool_call" && block.custom !== true && !hasDelta ? callText("{}", false) : [];
  }

  return {
    push(event) {
      if (event.type === "open") return open(event.block);
      if (current === undefined || event.type === "start") return [];
      switch (event.type) {
        case "delta": {
          const deltas = text(event.text, current);
          current.hasDelta = true;
          return deltas;
        }
        case "citation":
          current.citations.push(event.citation);
          return [];
        case "close":
          return close(current, event.signature);
      }
    },
    finish() {
      return {
        before: roleDelta(""),
        last: {
          ...(needsContent && { content: "" }),
          ...(details.length > 0 && !streamsDetails && { reasoning_details: details }),
          ...(annotations.length > 0 && { annotations }),
        },
      };
    },
  };
}
