/** Writes answers of the responses protocol, streamed or not. */
import { answerWriter } from "../canonical/finish.ts";
import type { FinishReason, Machine, OpenBlock, Reply, ReplyEvent } from "../canonical/types.ts";
import type { GatewayError } from "../../errors.ts";
import type { JsonObject } from "../../json/mod.ts";
import type { Frame, KeptAnswer, ResponseContext } from "../codec.ts";
import { openaiError } from "../error_bodies.ts";
import { objectOf, stringOf } from "../members.ts";
import { callItem } from "./write_call_item.ts";
import { messageItem } from "./write_message_item.ts";
import {
  emptyItem,
  type ItemPosition,
  type ItemStatus,
  type OutputItem,
  type ResponsesEvent,
  wholeItem,
} from "./output_item.ts";
import { reasoningItem } from "./write_reasoning_item.ts";
import { responseId, type ResponseProgress, responseWriter } from "./write_response_object.ts";
import { eventsOf } from "../canonical/aggregate_events.ts";

/** Types of the events that end an answer. */
const FINAL_EVENTS = new Set(["response.completed", "response.incomplete", "response.failed"]);

/**
 * Creates a writer of numbered events, of which the last one has the whole response. `[DONE]` follows it: OpenAI does
 * not send this mark, but clients of other vendors wait for it, and those of OpenAI ignore it.
 */
export function streamWriter(context: ResponseContext): Machine<ReplyEvent, Frame> {
  let writeTokens: WriteJson | undefined;
  const write: WriteJson = (value) => (writeTokens ?? JSON.stringify)(value);
  const machine = outputItemWriter(context, write);
  let number = 0;

  function frames(events: ResponsesEvent[]): Frame[] {
    return events.flatMap(({ type, members }) => {
      const frame = { event: type, data: write({ type, sequence_number: number++, ...members }) };
      return FINAL_EVENTS.has(type) ? [frame, { data: "[DONE]" }] : [frame];
    });
  }

  return {
    push(event) {
      if (event.type === "logprobs") writeTokens ??= tokenKeepingWriter();
      return frames(machine.push(event));
    },
    end: () => frames(machine.end()),
  };
}

/**
 * Creates a writer that composes an answer from items, of which one is open at a time. An item ends when the next one
 * begins, or with the answer. Then the finish reason decides whether the item is complete.
 */
function outputItemWriter(
  context: ResponseContext,
  write: WriteJson = JSON.stringify,
): Machine<ReplyEvent, ResponsesEvent> {
  const writeResponse = responseWriter(context);
  const output: JsonObject[] = [];
  const storedItems: JsonObject[] = [];
  let item: OutputItem | undefined;
  let started = false;
  let hasRefusal = false;

  function start(): ResponsesEvent[] {
    if (started) return [];
    started = true;
    const members = { response: writeResponse({ status: "in_progress", output }) };
    return [{ type: "response.created", members }, { type: "response.in_progress", members }];
  }

  function closeItem(status: ItemStatus): ResponsesEvent[] {
    const events = item?.done(status) ?? [];
    const value = item?.value(status);
    if (value !== undefined) output.push(value);
    const stored = item?.kept === undefined ? value : item.kept(status);
    if (stored !== undefined) storedItems.push(stored);
    item = undefined;
    return events;
  }

  function openBlock(block: OpenBlock): ResponsesEvent[] {
    if (block.type === "refusal") hasRefusal = true;
    const joined = item?.join(block);
    if (joined !== undefined) return joined;
    const events = closeItem("completed");
    const opened = openItem(block, { context, position: { requestId: context.requestId, index: output.length } });
    item = opened.item;
    return [...events, ...opened.events];
  }

  function finish({ reason, usage }: Extract<ReplyEvent, { type: "finish" }>): ResponsesEvent[] {
    const incomplete = incompleteReason(reason, hasRefusal);
    const status = incomplete === undefined ? "completed" : "incomplete";
    const events = closeItem(status);
    const progress: ResponseProgress = { status, output, usage, ...(incomplete !== undefined && { incomplete }) };
    const response = writeResponse(progress);
    context.keeper?.keep?.({ id: responseId(context), output: storedItems.map((item) => storedItem(item, write)) });
    return [...events, { type: `response.${status}`, members: { response } }];
  }

  /**
   * Ends the answer with an error. Published types have the members of the error at the top, OpenAI's service and Open
   * Responses have them under `error`, so both are written. Clients that know neither get the failed response with its
   * output so far.
   */
  function fail(thrown: GatewayError): ResponsesEvent[] {
    const events = start();
    const error = openaiError(thrown);
    const { code, message, param } = error;
    const value = item?.value("incomplete");
    if (value !== undefined) output.push(value);
    const failure = { code: code ?? (thrown.kind === "invalid" ? "invalid_prompt" : "server_error"), message };
    return [
      ...events,
      { type: "error", members: { code, message, param, error } },
      { type: "response.failed", members: { response: writeResponse({ status: "failed", output, error: failure }) } },
    ];
  }

  return answerWriter((event) => {
    switch (event.type) {
      case "start":
        return start();
      case "open":
        return openBlock(event.block);
      case "delta":
        return item?.delta(event.text) ?? [];
      case "logprobs":
        item?.logprobs?.(event.tokens);
        return [];
      case "citation":
        return item?.citation(event.citation) ?? [];
      case "close":
        return item?.close(event.signature) ?? [];
      case "finish":
        return finish(event);
      case "error":
        return fail(event.error);
    }
  });
}

/** Creates the item of a block, and the events that open it. */
function openItem(
  block: OpenBlock,
  { context, position }: { context: ResponseContext; position: ItemPosition },
): { item: OutputItem; events: ResponsesEvent[] } {
  switch (block.type) {
    case "text":
    case "refusal":
      return messageItem(block.type, position);
    case "tool_call":
      return callItem(block, position);
    case "reasoning": {
      const { reasoning } = context.prompt;
      return reasoningItem({
        // A client that did not ask for reasoning expects a message as the first item.
        item: reasoning !== undefined,
        summary: reasoning?.display === "summarized" || reasoning?.display === "full",
        encrypted: reasoning?.encrypted === true,
        hidden: block.hidden === true,
      }, position);
    }
    case "vendor_specific":
      return block.from === "responses" ? wholeItem(block.value, position) : { item: emptyItem(), events: [] };
  }
}

/** Returns why an answer is incomplete; undefined if it is complete. A refusal without text is incomplete. */
function incompleteReason(reason: FinishReason, hasRefusal: boolean): ResponseProgress["incomplete"] {
  if (reason === "length") return "max_output_tokens";
  return reason === "refusal" && !hasRefusal ? "content_filter" : undefined;
}

/** Returns an output item in the form in which it is stored for later requests. */
function storedItem(item: JsonObject, write: WriteJson): KeptAnswer["output"][number] {
  const id = stringOf(item.id);
  return { text: write(item), ...(id !== undefined && { id }) };
}

/** Writes an answer that is not streamed, which is the response at the end of its stream. */
export function writeReply(reply: Reply, context: ResponseContext): JsonObject {
  const machine = outputItemWriter(context);
  const last = eventsOf(reply).flatMap((event) => machine.push(event)).at(-1);
  const response = objectOf(last?.members.response);
  if (response === undefined) throw new RangeError("Cannot write the reply: its events have no end");
  return response;
}

/** Writes an object as JSON. */
type WriteJson = (value: JsonObject) => string;

/** Stands for a list of tokens while the JSON around it is written. */
const MARK = "\ue000logprobs\ue000";

/**
 * Creates a writer that keeps the JSON of each token and of each list, which must not change any more: five texts of an
 * answer repeat all log probabilities. Without it, 24,000 tokens take 1.2 s at the end of an answer.
 */
function tokenKeepingWriter(): WriteJson {
  const texts = new Map<unknown, string>();

  function textOf(value: unknown): string {
    let text = texts.get(value);
    if (text === undefined) {
      text = Array.isArray(value) ? `[${value.map(textOf).join(",")}]` : JSON.stringify(value);
      texts.set(value, text);
    }
    return text;
  }

  return (value) => {
    const lists: string[] = [];
    const json = JSON.stringify(value, (name, member) => {
      if (name !== "logprobs" || !Array.isArray(member) || member.length === 0) return member;
      lists.push(textOf(member));
      return MARK;
    });
    const [first = "", ...others] = json.split(`"${MARK}"`);
    // The model may have written the mark, too.
    if (others.length !== lists.length) return JSON.stringify(value);
    return others.reduce((joined, other, index) => joined + (lists[index] ?? "") + other, first);
  };
}
