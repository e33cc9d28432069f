/** Joins the events of a streamed answer into a whole reply, splits a reply into events, and measures events. */
import type { ContentBlock, OpenBlock, Reply, ReplyEvent } from "./types.ts";
import { cutAnswerError } from "../../errors.ts";
import { inputUsage } from "./input_tokens.ts";
import { addTokens } from "./logprobs.ts";
import { present } from "../members.ts";

/** Collects a reply while its events arrive. */
export class ReplyAggregator {
  readonly #blocks: ContentBlock[] = [];
  #deltas: string[] = [];
  #id: string | undefined;
  #reply: Reply | undefined;

  /** Adds the next event. @throws {GatewayError} the error that ended the stream */
  push(event: ReplyEvent): void {
    switch (event.type) {
      case "start":
        this.#id = event.id;
        break;
      case "open":
        this.#blocks.push(emptyBlock(event.block));
        this.#deltas = [];
        break;
      case "delta":
        this.#deltas.push(event.text);
        break;
      case "citation": {
        const block = this.#blocks.at(-1);
        if (block?.type === "text") (block.citations ??= []).push(event.citation);
        break;
      }
      case "logprobs": {
        const block = this.#blocks.at(-1);
        if (block?.type === "text") addTokens(block.logprobs ??= [], event.tokens);
        break;
      }
      case "close": {
        const block = this.#blocks.at(-1);
        if (block !== undefined) setText(block, this.#deltas.join(""));
        if (block?.type === "reasoning" && event.signature !== undefined) block.signature = event.signature;
        break;
      }
      case "finish":
        this.#reply = {
          ...present({ id: this.#id }),
          blocks: this.#blocks,
          finish: event.reason,
          ...present({ stopSequence: event.stopSequence }),
          usage: event.usage,
        };
        break;
      case "error":
        throw event.error;
    }
  }

  /** Returns the whole reply. @throws {GatewayError} `upstream`, if the stream was cut short */
  end(): Reply {
    if (this.#reply === undefined) throw cutAnswerError();
    return this.#reply;
  }
}

/** Returns the whole reply of a stream of events. @throws {GatewayError} as `ReplyAggregator` does */
export function aggregateEvents(events: Iterable<ReplyEvent>): Reply {
  const aggregator = new ReplyAggregator();
  for (const event of events) aggregator.push(event);
  return aggregator.end();
}

/** Returns the events of a whole reply, with one delta for each block with text. */
export function eventsOf(reply: Reply): ReplyEvent[] {
  const events: ReplyEvent[] = [{ type: "start", ...present({ id: reply.id, usage: inputUsage(reply.usage) }) }];
  reply.blocks.forEach((block, index) => {
    events.push({ type: "open", index, block: openBlockOf(block) });
    const text = textOf(block);
    if (block.type === "text" && block.logprobs !== undefined) {
      events.push({ type: "logprobs", index, tokens: block.logprobs });
    }
    if (text !== "") events.push({ type: "delta", index, text });
    if (block.type === "text") {
      for (const citation of block.citations ?? []) events.push({ type: "citation", index, citation });
    }
    const signature = block.type === "reasoning" ? block.signature : undefined;
    events.push({ type: "close", index, ...present({ signature }) });
  });
  const { finish: reason, stopSequence, usage } = reply;
  events.push({ type: "finish", reason, ...present({ stopSequence }), usage });
  return events;
}

function emptyBlock(open: OpenBlock): ContentBlock {
  switch (open.type) {
    case "tool_call":
      return { ...open, arguments: "" };
    case "vendor_specific":
      return open;
    default:
      return { ...open, text: "" };
  }
}

function setText(block: ContentBlock, text: string): void {
  if (block.type === "text" || block.type === "reasoning" || block.type === "refusal") block.text = text;
  if (block.type === "tool_call") block.arguments = text === "" && block.custom !== true ? "{}" : text;
}

function openBlockOf(block: ContentBlock): OpenBlock {
  switch (block.type) {
    case "text":
    case "refusal":
      return { type: block.type };
    case "reasoning":
      return { type: "reasoning", ...present({ hidden: block.hidden }) };
    case "tool_call": {
      const { type, id, name, custom, namespace } = block;
      return { type, id, name, ...present({ custom, namespace }) };
    }
    case "vendor_specific":
      return { type: "vendor_specific", from: block.from, value: block.value };
    default:
      throw new TypeError(`Cannot put a block of type "${block.type}" into an answer`);
  }
}

function textOf(block: ContentBlock): string {
  if (block.type === "tool_call") return block.arguments;
  return block.type === "text" || block.type === "reasoning" || block.type === "refusal" ? block.text : "";
}

/** An event of a block. */
export type BlockEvent = Extract<ReplyEvent, { index: number }>;

/** Returns the approximate length of an event's content, in characters. */
export function lengthOf(event: BlockEvent): number {
  switch (event.type) {
    case "open":
      return JSON.stringify(event.block).length;
    case "delta":
      return event.text.length;
    case "citation":
      return JSON.stringify(event.citation).length;
    case "logprobs":
      return JSON.stringify(event.tokens).length;
    case "close":
      return event.signature?.value.length ?? 0;
  }
}
