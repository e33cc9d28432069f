/** Reads answers of Gemini, streamed or not. Each piece of a stream has the form of a whole answer. */
import { answerReader } from "../canonical/finish.ts";
import { callSignatureId } from "../canonical/signature.ts";
import { inputUsage } from "../canonical/input_tokens.ts";
import { aggregateEvents } from "../canonical/aggregate_events.ts";
import type { FinishReason, Machine, OpenBlock, Reply, ReplyEvent, Signature } from "../canonical/types.ts";
import { cutAnswerError, GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject, tryParse } from "../../json/mod.ts";
import { countOf, nonEmptyStringOf, numberOf, objectOf, objectsOf, present, stringOf, textsOf } from "../members.ts";
import type { Origin } from "../upstream_codec.ts";
import { FunctionCallReader, MAX_ID_LENGTH } from "./read_function_calls.ts";
import { errorIn } from "./read_error.ts";
import { PRECEDING_TEXT_SIGNATURE_ID, TEXT_SIGNATURE_ID } from "./signatures.ts";
import { readUsage } from "./gemini_usage.ts";
import type { Frame } from "../codec.ts";
import { valueOf } from "../frame_template.ts";

/** Limit of blocks in one answer. */
const MAX_BLOCKS = 4_096;

/** The counts of `usageMetadata` that are read. */
const COUNTS = [
  "promptTokenCount",
  "cachedContentTokenCount",
  "toolUsePromptTokenCount",
  "candidatesTokenCount",
  "thoughtsTokenCount",
  "totalTokenCount",
];

/** Reads a whole answer. @throws {GatewayError} `upstream`, or the error that an answer with status 200 contains */
export function readReply(body: JsonObject, origin: Origin): Reply {
  const reader = replyReader(origin);
  return aggregateEvents([...reader.push(body), ...reader.end()]);
}

/**
 * Creates a reader of the pieces of an answer. Adjacent texts are one block, and so are adjacent thoughts up to a
 * signature. Parts that are neither texts nor calls are dropped.
 *
 * The answer ends with the stream, because some models repeat `finishReason` on every piece.
 */
function replyReader({ issuer, texts }: Origin): Machine<Json | undefined, ReplyEvent> {
  const calls = new FunctionCallReader();
  let isStarted = false;
  let id: string | undefined;
  let index = -1;
  let open: OpenBlock["type"] | undefined;
  let finishReason: string | undefined;
  let isBlocked = false;
  const counts: JsonObject = {};
  /** Number of web searches for grounding. */
  let searches = 0;

  function openBlock(block: OpenBlock): ReplyEvent[] {
    if (index + 1 === MAX_BLOCKS) {
      throw new GatewayError("upstream", "The model's answer has too many parts", { fault: "oversized" });
    }
    const events = closeBlock();
    open = block.type;
    events.push({ type: "open", index: ++index, block });
    return events;
  }

  function closeBlock(signature?: Signature): ReplyEvent[] {
    if (open === undefined) return [];
    open = undefined;
    return [{ type: "close", index, ...present({ signature }) }];
  }

  function addText(type: "text" | "reasoning", text: string): ReplyEvent[] {
    if (text === "") return [];
    const events = open === type ? [] : openBlock({ type });
    events.push({ type: "delta", index, text });
    return events;
  }

  function hiddenReasoning(value: string, id?: string): ReplyEvent[] {
    return [
      ...openBlock({ type: "reasoning", hidden: true }),
      ...closeBlock({ issuer, value, ...present({ id }) }),
    ];
  }

  function readText(text: string, signature: string | undefined): ReplyEvent[] {
    if (signature === undefined) return addText("text", text);
    // An open text is not split, so its signature comes after it.
    if (open === "text") return [...addText("text", text), ...hiddenReasoning(signature, PRECEDING_TEXT_SIGNATURE_ID)];
    return [...hiddenReasoning(signature, TEXT_SIGNATURE_ID), ...addText("text", text)];
  }

  function readThought(text: string, signature: string | undefined): ReplyEvent[] {
    if (signature === undefined) return addText("reasoning", text);
    if (text === "" && open !== "reasoning") return hiddenReasoning(signature);
    const events = addText("reasoning", text);
    return [...events, ...closeBlock({ issuer, value: signature })];
  }

  function readCall(functionCall: JsonObject, signature: string | undefined): ReplyEvent[] {
    const call = calls.read(functionCall, { responseId: id, signature, texts });
    const events = signature === undefined ? [] : hiddenReasoning(signature, callSignatureId(call.id));
    events.push(
      ...openBlock({ type: "tool_call", id: call.id, name: call.name }),
      { type: "delta", index, text: call.arguments },
      ...closeBlock(),
    );
    return events;
  }

  function readPart(part: JsonObject): ReplyEvent[] {
    const signature = nonEmptyStringOf(part.thoughtSignature);
    if (part.functionCall !== undefined && part.functionCall !== null) {
      return readCall(objectOf(part.functionCall) ?? {}, signature);
    }
    const text = stringOf(part.text) ?? (isSignatureOnly(part) ? "" : undefined);
    if (text === undefined) return [];
    return part.thought === true ? readThought(text, signature) : readText(text, signature);
  }

  function readPiece(piece: Json | undefined): ReplyEvent[] {
    if (!isObject(piece)) throw new GatewayError("upstream", "The upstream sent a chunk that is not a JSON object");
    const error = errorIn(piece);
    if (error !== undefined) throw error;
    const metadata = objectOf(piece.usageMetadata) ?? {};
    for (const name of COUNTS) {
      const count = countOf(metadata[name]);
      if (count !== undefined) counts[name] = count;
    }
    const events: ReplyEvent[] = [];
    if (!isStarted) {
      isStarted = true;
      const given = nonEmptyStringOf(piece.responseId);
      if (given !== undefined && given.length <= MAX_ID_LENGTH) id = given;
      events.push({ type: "start", ...present({ id, usage: inputUsage(readUsage(counts, searches)) }) });
    }
    const blockReason = nonEmptyStringOf(objectOf(piece.promptFeedback)?.blockReason);
    isBlocked ||= blockReason !== undefined && blockReason !== "BLOCKED_REASON_UNSPECIFIED";
    // Only one answer is requested.
    const candidate = objectsOf(piece.candidates).find(({ index }) => (numberOf(index) ?? 0) === 0) ?? {};
    for (const part of objectsOf(objectOf(candidate.content)?.parts)) events.push(...readPart(part));
    const grounding = candidate.groundingMetadata;
    if (grounding !== undefined) searches = textsOf(objectOf(grounding)?.webSearchQueries).length || searches;
    const reason = nonEmptyStringOf(candidate.finishReason);
    if (reason !== undefined && reason !== "FINISH_REASON_UNSPECIFIED") finishReason = reason;
    return events;
  }

  function finish(): ReplyEvent[] {
    const reported = finishReason ?? (isBlocked ? "SAFETY" : undefined);
    if (reported === undefined) throw cutAnswerError();
    const reason = readFinish(reported, { blocks: index + 1, calls: calls.count });
    return [...closeBlock(), { type: "finish", reason, usage: readUsage(counts, searches) }];
  }

  return answerReader({ read: readPiece, end: finish });
}

/** True for a part that has only a signature, whose text came before. */
function isSignatureOnly(part: JsonObject): boolean {
  return part.thoughtSignature !== undefined &&
    Object.keys(part).every((name) => name === "thoughtSignature" || name === "thought");
}

/** Creates a reader of a stream with `alt=sse`. Its events always have the order that `ReplyEvent` describes. */
export function streamReader(origin: Origin): Machine<Frame, ReplyEvent> {
  const answer = replyReader(origin);
  return {
    push(frame) {
      const { event, data } = frame;
      // Some Gemini-compatible servers end a stream with `[DONE]`.
      if (data.trim() === "" || data === "[DONE]") return [];
      const value = valueOf(frame, tryParse);
      const isBareError = event === "error" && isObject(value) && value.error === undefined;
      const piece = isBareError ? { error: value } : value;
      // Some errors come in an array.
      return Array.isArray(piece) ? piece.flatMap((inner) => answer.push(inner)) : answer.push(piece);
    },
    end: () => answer.end(),
  };
}

const REFUSAL_REASONS: ReadonlySet<string> = new Set(
  `SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION`
    .split(/\s+/),
);

/** Finish reasons of answers that end at a failed tool call. They are billed. */
const FAILED_CALL_REASONS: ReadonlySet<string> = new Set([
  ...["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"],
]);

/**
 * Reads a `finishReason`. With complete calls every end except `length` is `tool_use`, even a refusal, because the
 * client must answer the calls. An answer that ends at a failed call is incomplete, so its reason is `length`.
 * @param counts the number of blocks, and of calls among them
 * @throws {GatewayError} `upstream`, if there is no content, and the reason is a malformed call, `OTHER` or unknown
 */
export function readFinish(reason: string, counts: { blocks: number; calls: number }): FinishReason {
  if (reason === "MAX_TOKENS" || reason === "CONTINUATION") return "length";
  if (counts.calls > 0) return "tool_use";
  if (reason === "MALFORMED_FUNCTION_CALL" && counts.blocks === 0) {
    throw new GatewayError("upstream", "The model returned only a malformed function call");
  }
  if (FAILED_CALL_REASONS.has(reason)) return "length";
  if (REFUSAL_REASONS.has(reason)) return "refusal";
  if (reason !== "STOP" && counts.blocks === 0) {
    throw new GatewayError("upstream", "The model returned neither content nor a known finish reason");
  }
  return "end";
}
