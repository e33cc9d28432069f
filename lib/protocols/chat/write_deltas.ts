/** Turns the events of an answer into the deltas of its chunks. */
import { countCodePoints } from "../canonical/citations.ts";
import type { Citation, ContentBlockOf, OpenBlock, ReplyEvent, Signature } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { Echo } from "../codec.ts";
import { writeAnnotation } from "./write_reply.ts";
import { writeDetails } from "./reasoning_details.ts";
import { hidesReasoning } from "./write_reply.ts";
import { usesLegacyFunctions } from "./members.ts";

/** Turns events between start and end into deltas. */
export interface DeltaWriter {
  push(event: Exclude<ReplyEvent, { type: "finish" | "error" }>): JsonObject[];
  /** Returns the last delta, which goes out with the finish reason, and the deltas before it. */
  finish(): { before: JsonObject[]; last: JsonObject };
}

interface Current {
  block: OpenBlock;
  /** True after its first delta. */
  hasBegun: boolean;
  /** Text of visible reasoning. */
  texts: string[];
  citations: Citation[];
  /** Start of the block in the content, in code points. */
  start: number;
}

/** Writes the deltas of one message. */
export function deltaWriter(echo: Echo): DeltaWriter {
  const legacy = usesLegacyFunctions(echo.request);
  const hides = hidesReasoning(echo);
  // Lists go out whole in the last delta: clients that join deltas keep the last list only, or join lists wrongly.
  const details: JsonObject[] = [];
  const annotations: JsonObject[] = [];
  let current: Current | undefined;
  let roleSent = false;
  /** True while the content was opened as null, and no text, call or refusal has followed. */
  let contentOwed = false;
  let reasoningSent = false;
  let calls = 0;
  /** Length of the content so far, in code points. */
  let length = 0;

  /** Holds the role back until the message is known to begin with text or not. */
  function role(content: string | null): JsonObject[] {
    if (roleSent) return [];
    roleSent = true;
    return [{ role: "assistant", content, refusal: null }];
  }

  function callDelta(entry: JsonObject): JsonObject[] {
    if (!legacy) return [{ tool_calls: [{ index: calls - 1, ...entry }] }];
    // A `function_call` message has room for one call.
    return calls === 1 && entry.function !== undefined ? [{ function_call: entry.function }] : [];
  }

  function callText(text: string, custom: boolean | undefined): JsonObject[] {
    return callDelta(custom === true ? { custom: { input: text } } : { function: { arguments: text } });
  }

  function open(block: OpenBlock): JsonObject[] {
    current = { block, hasBegun: false, texts: [], citations: [], start: length };
    if (block.type !== "tool_call") return [];
    const { id, name, custom } = block;
    calls++;
    contentOwed = false;
    const entry = custom === true
      ? { id, type: "custom", custom: { name, input: "" } }
      : { id, type: "function", function: { name, arguments: "" } };
    return [...role(null), ...callDelta(entry)];
  }

  function reasoning(text: string, { texts, hasBegun }: Current): JsonObject[] {
    if (hides) return [];
    if (!roleSent) contentOwed = true;
    const gap = reasoningSent && !hasBegun ? "\n\n" : "";
    reasoningSent = true;
    texts.push(text);
    return [...role(null), { reasoning_content: gap + text }];
  }

  function text(piece: string, open: Current): JsonObject[] {
    switch (open.block.type) {
      case "text":
        contentOwed = false;
        length += countCodePoints(piece);
        return [...role(""), { content: piece }];
      case "refusal":
        contentOwed = false;
        return [...role(null), { refusal: piece }];
      case "reasoning":
        return reasoning(piece, open);
      case "tool_call":
        return callText(piece, open.block.custom);
      case "vendor_specific":
        return [];
    }
  }

  function close(
    { block, hasBegun, texts, citations, start }: Current,
    signature: Signature | undefined,
  ): JsonObject[] {
    if (block.type === "reasoning") {
      const complete: ContentBlockOf<"reasoning"> = { ...block, text: texts.join(""), ...(signature && { signature }) };
      details.push(...writeDetails(complete, details.length));
    }
    for (const citation of citations) {
      const annotation = writeAnnotation(citation, { start, end: length });
      if (annotation !== undefined) annotations.push(annotation);
    }
    return block.type === "tool_call" && block.custom !== true && !hasBegun ? callText("{}", false) : [];
  }

  return {
    push(event) {
      if (event.type === "open") return open(event.block);
      if (current === undefined || event.type === "start") return [];
      switch (event.type) {
        case "delta": {
          const deltas = text(event.text, current);
          current.hasBegun = true;
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
        before: role(""),
        last: {
          ...(contentOwed && { content: "" }),
          ...(details.length > 0 && { reasoning_details: details }),
          ...(annotations.length > 0 && { annotations }),
        },
      };
    },
  };
}
