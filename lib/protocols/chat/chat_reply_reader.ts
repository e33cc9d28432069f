/** Reads the message of a chat answer from its deltas. The message of an answer that is not streamed is one delta. */
import { countCodePoints, moveAnnotation } from "../canonical/citations.ts";
import { settledReason } from "../canonical/finish.ts";
import { addTokens, readLogprobs } from "../canonical/logprobs.ts";
import type { FinishReason, ReplyEvent, TokenLogprob } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject } from "../../json/mod.ts";
import { objectsOf, partTexts, stringOf } from "../members.ts";
import type { Origin } from "../upstream_codec.ts";
import { BlockQueue, type QueuedBlock } from "./block_queue.ts";
import { ToolCallReader } from "./read_tool_calls.ts";
import { ReasoningReader } from "./read_streamed_reasoning.ts";

/** Length from which on no more white space is kept for the beginning of a text, in characters, and no more tokens. */
const MAX_BLANK = 65_536;

/** Reads the message of one answer. */
export class ChatReplyReader {
  readonly #queue = new BlockQueue();
  readonly #calls: ToolCallReader;
  readonly #thoughts = new ReasoningReader(this.#queue);
  #text: QueuedBlock | undefined;
  #refusal: QueuedBlock | undefined;
  /** Length of all text, and of the text before the last block, in code points. */
  #length = 0;
  #textStart = 0;
  /** White space before a text. Alone it would be a blank block, which vendors refuse in the next request. */
  #blank = "";
  /** Tokens of the text that is added next. */
  #tokens: TokenLogprob[] = [];

  constructor({ issuer }: Origin) {
    this.#calls = new ToolCallReader(this.#queue, issuer);
  }

  get hasContent(): boolean {
    return this.#queue.count > 0;
  }

  /** True while a call has incomplete arguments. */
  get hasOpenCall(): boolean {
    return this.#calls.hasOpenCall;
  }

  /**
   * Reads a delta or a whole message.
   * @param id id of the answer; "" if it has none
   * @param logprobs the `logprobs` beside it
   * @throws {GatewayError} `upstream`, for deltas that cannot be ordered
   */
  push(delta: JsonObject, id: string, logprobs: Json | undefined): void {
    this.#thoughts.push(delta);
    if (isObject(logprobs) && delta.content && this.#tokens.length < MAX_BLANK) {
      addTokens(this.#tokens, readLogprobs(logprobs.content));
    }
    this.#readContent(delta.content);
    const { tail } = this.#queue;
    if (tail?.type === "text") {
      for (const annotation of objectsOf(delta.annotations)) {
        tail.sequence.citation({ from: "chat", value: moveAnnotation(annotation, -this.#textStart) });
      }
    }
    this.#addRefusal(stringOf(delta.refusal) ?? "");
    this.#calls.push(delta.tool_calls, id);
    this.#calls.pushFunction(delta.function_call, id);
    this.#queue.checkWaiting();
  }

  /**
   * Closes the answer.
   * @returns the corrected finish reason
   * @throws {GatewayError} `upstream`, if a content filter stopped the answer within a call
   */
  end(reason: FinishReason): FinishReason {
    if (reason === "refusal" && this.#calls.hasOpenCall) {
      throw new GatewayError("upstream", "The model's answer was stopped by a content filter in the middle of a call", {
        code: "content_filter",
      });
    }
    this.#queue.end();
    return settledReason(reason, this.#calls.count > 0);
  }

  /** Returns the events since the last call. */
  take(): ReplyEvent[] {
    return this.#queue.take();
  }

  /** Reads the content: a text, or parts. Mistral's reasoning models send parts, some of which are thinking. */
  #readContent(content: Json | undefined): void {
    if (typeof content === "string") return this.#addText(content);
    for (const part of objectsOf(content)) {
      if (part.type === "text") this.#addText(stringOf(part.text) ?? "");
      if (part.type === "refusal") this.#addRefusal(stringOf(part.refusal) ?? "");
      if (part.type === "thinking") this.#thoughts.addPlainText(thinkingText(part));
    }
  }

  #addText(text: string): void {
    if (text === "") return;
    if (this.#text !== undefined && this.#text === this.#queue.tail) return this.#append(this.#text, text);
    // Only the new piece is searched, because some models write white space without end.
    if (text.trim() === "") {
      if (this.#blank.length < MAX_BLANK) this.#blank += text;
      return;
    }
    this.#textStart = this.#length;
    this.#text = this.#queue.add({ type: "text" }, { done: true });
    this.#append(this.#text, this.#blank + text);
    this.#blank = "";
  }

  #append(block: QueuedBlock, text: string): void {
    block.sequence.logprobs(this.#tokens);
    this.#queue.append(block, text);
    this.#length += countCodePoints(text);
    if (this.#tokens.length > 0) this.#tokens = [];
  }

  #addRefusal(text: string): void {
    if (text === "") return;
    if (this.#refusal === undefined || this.#refusal !== this.#queue.tail) {
      this.#refusal = this.#queue.add({ type: "refusal" }, { done: true });
    }
    this.#queue.append(this.#refusal, text);
  }
}

/** Returns the text of a part with thinking. */
export function thinkingText({ thinking }: JsonObject): string {
  return stringOf(thinking) ?? partTexts(thinking).join("");
}
