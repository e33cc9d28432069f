/** Writes streamed answers of the messages protocol. */
import { answerWriter } from "../canonical/finish.ts";
import { isRedacted, writeSignature } from "../canonical/signature.ts";
import type { Machine, OpenBlock, ReplyEvent, Signature, TokenUsage } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { Frame, ResponseContext } from "../codec.ts";
import { anthropicError } from "../error_bodies.ts";
import { omitsThinking, writeHead, writeStartUsage, writeStop, writeUsage } from "./write_reply.ts";

/** The JSON around the input of a custom tool. */
const CUSTOM_HEAD = '{"input":"';
const CUSTOM_TAIL = '"}';

const PING = frame("ping", {});

/**
 * Creates a writer of the protocol's events. Text and thinking blocks begin only with their first content, so that
 * there are no empty blocks and no gaps between indices.
 */
export function streamWriter(context: ResponseContext): Machine<ReplyEvent, Frame> {
  const omitsText = omitsThinking(context);
  let refused = false;
  /** Index of the open block; if none is open, of the next one. */
  let index = 0;
  let block: OpenBlock | undefined;
  let hasStarted = false;
  let hasInput = false;

  function startBlock(content: JsonObject): Frame[] {
    if (hasStarted) return [];
    hasStarted = true;
    return [frame("content_block_start", { index, content_block: content })];
  }

  function delta(members: JsonObject): Frame {
    return frame("content_block_delta", { index, delta: members });
  }

  function open(opened: OpenBlock): Frame[] {
    block = opened;
    hasStarted = false;
    hasInput = false;
    if (opened.type === "vendor_specific") return opened.from === "messages" ? startBlock(opened.value) : [];
    if (opened.type !== "tool_call") return [];
    const { id, name, custom } = opened;
    return [
      ...startBlock({ type: "tool_use", id, name, input: {} }),
      inputDelta(custom === true ? CUSTOM_HEAD : ""),
    ];
  }

  function inputDelta(text: string): Frame {
    return delta({ type: "input_json_delta", partial_json: text });
  }

  function write(text: string): Frame[] {
    switch (block?.type) {
      case "refusal":
      case "text":
        refused ||= block.type === "refusal";
        return [...startBlock({ type: "text", text: "" }), delta({ type: "text_delta", text })];
      case "reasoning":
        if (omitsText || block.hidden === true) return [];
        return [...startBlock(emptyThinking()), delta({ type: "thinking_delta", thinking: text })];
      case "tool_call":
        hasInput = true;
        // The client joins the pieces as text, so each is escaped separately.
        return [inputDelta(block.custom === true ? JSON.stringify(text).slice(1, -1) : text)];
      default:
        return [];
    }
  }

  function close(signature: Signature | undefined): Frame[] {
    const frames = [...writeSignatureDelta(signature), ...endInput()];
    block = undefined;
    if (!hasStarted) return frames;
    frames.push(frame("content_block_stop", { index }));
    index++;
    return frames;
  }

  function writeSignatureDelta(signature: Signature | undefined): Frame[] {
    if (block?.type !== "reasoning") return [];
    // Clients keep a thinking block only if it got a signature event, even an empty one.
    if (signature === undefined) return hasStarted ? [delta({ type: "signature_delta", signature: "" })] : [];
    const value = writeSignature(signature, "anthropic");
    if (isRedacted(signature)) return startBlock({ type: "redacted_thinking", data: value });
    return [...startBlock(emptyThinking()), delta({ type: "signature_delta", signature: value })];
  }

  function endInput(): Frame[] {
    if (block?.type !== "tool_call") return [];
    if (block.custom === true) return [inputDelta(CUSTOM_TAIL)];
    return hasInput ? [] : [inputDelta("{}")];
  }

  return answerWriter((event) => {
    switch (event.type) {
      case "start":
        return [frame("message_start", { message: writeStart(context, event.usage) }), PING];
      case "open":
        return open(event.block);
      case "delta":
        return write(event.text);
      case "citation":
        if (block?.type !== "text" || event.citation.from !== "messages") return [];
        return [
          ...startBlock({ type: "text", text: "" }),
          delta({ type: "citations_delta", citation: event.citation.value }),
        ];
      case "logprobs":
        return [];
      case "close":
        return close(event.signature);
      case "finish":
        return [
          frame("message_delta", {
            delta: writeStop(event.reason, { stopSequence: event.stopSequence, refused }),
            usage: writeUsage(event.usage),
          }),
          frame("message_stop", {}),
        ];
      case "error":
        return [frame("error", { error: anthropicError(event.error), request_id: `req_${context.requestId}` })];
    }
  });
}

/** Writes the message as it is at the start. SDKs require that it has a usage. */
function writeStart(context: ResponseContext, usage: TokenUsage = {}): JsonObject {
  return { ...writeHead(context), content: [], stop_reason: null, stop_sequence: null, usage: writeStartUsage(usage) };
}

function emptyThinking(): JsonObject {
  return { type: "thinking", thinking: "", signature: "" };
}

/** Returns the frame of an event. Official SDKs ignore events without an `event:` line. */
function frame(event: string, members: JsonObject): Frame {
  return { event, data: JSON.stringify({ type: event, ...members }) };
}
