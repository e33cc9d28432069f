/** Reads answers of messages upstreams, streamed or not. */
import { aggregateEvents } from "../canonical/aggregate_events.ts";
import { answerReader, finishEvent, settledReason } from "../canonical/finish.ts";
import { inputUsage } from "../canonical/input_tokens.ts";
import { BlockSerializer } from "../canonical/block_serializer.ts";
import type { FinishReason, Machine, Reply, ReplyEvent, ReplySummary } from "../canonical/types.ts";
import { cutAnswerError, GatewayError } from "../../errors.ts";
import { isObject, type Json, type JsonObject, tryParse } from "../../json/mod.ts";
import type { Frame } from "../codec.ts";
import { templateParser, type TemplateRule, valueOf, type VariableMember } from "../frame_template.ts";
import { nonEmptyStringOf, numberOf, objectOf, objectsOf, present, stringOf } from "../members.ts";
import type { Origin } from "../upstream_codec.ts";
import { errorInside } from "../vendor_error.ts";
import { type BlockContext, type BlockReader, readBlock } from "./read_block.ts";
import { errorOf } from "./read_error.ts";
import { usageReader } from "./read_messages_usage.ts";

/** Limit of what is kept of an answer in memory, in UTF-16 code units. */
const MAX_KEPT = 16 * 1024 * 1024;

/** Limit of blocks in one answer. */
const MAX_BLOCKS = 4096;

/** Finish reasons. All others are an ordinary end; whether that is `tool_use` follows from the calls. */
const FINISH_REASONS: ReadonlyMap<string, FinishReason> = new Map<string, FinishReason>([
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["stop_sequence", "stop_sequence"],
  ["refusal", "refusal"],
  ["pause_turn", "pause"],
]);

const STOP_MEMBERS = ["stop_reason", "stop_sequence", "stop_details"] as const;

/** Creates a reader of frames. Its events always have the order that `ReplyEvent` describes. */
export function streamReader(origin: Origin): Machine<Frame, ReplyEvent> {
  const machine = eventReader(origin);
  const parse = templateParser(tryParse, messagesTemplateRule);
  return {
    push(frame) {
      const { event, data } = frame;
      // Some servers end a stream with `[DONE]`, as in chat.
      if (data === "" || data === "[DONE]") return [];
      const body = valueOf(frame, parse);
      return machine.push(
        isObject(body) && body.type === undefined && event !== undefined ? { ...body, type: event } : body,
      );
    },
    end: () => machine.end(),
  };
}

/** Creates a reader of parsed events. An event that is not JSON is `undefined`. */
function eventReader({ issuer, texts, tier }: Origin): Machine<Json | undefined, ReplyEvent> {
  let events: ReplyEvent[] = [];
  let keptLength = 0;
  let blocks = 0;
  let calls = 0;
  let id: string | undefined;
  let started = false;
  const stop: { [name in typeof STOP_MEMBERS[number]]?: Json | undefined } = {};
  const usage = usageReader(tier);
  const serializer = new BlockSerializer(emit);
  /** Open blocks by the upstream's index. */
  const open = new Map<number, BlockReader>();
  let lastIndex = -1;
  const context: BlockContext = {
    issuer,
    ...(texts !== undefined && { texts }),
    keep: (length) => keptLength += length,
    callId: () => `call_${(id ?? "").slice(0, 64).replace(/[^A-Za-z0-9_-]/g, "").slice(0, 48)}_${blocks}`,
  };

  function emit(event: ReplyEvent): void {
    if (event.type === "open" && event.block.type === "tool_call") calls++;
    events.push(event);
  }

  function begin(message: JsonObject): void {
    if (started) return;
    started = true;
    id = nonEmptyStringOf(message.id);
    usage.start(message.usage);
    emit({ type: "start", ...present({ id, usage: inputUsage(usage.total()) }) });
  }

  /** Reads a start. Some relays repeat it, but the start of another message is an error. */
  function startMessage(value: Json | undefined): void {
    const message = objectOf(value) ?? {};
    const isOther = started && typeof message.id === "string" && id !== undefined && message.id !== id;
    if (isOther) throw broken("another message begins inside it");
    begin(message);
  }

  function startBlock(index: number, value: Json | undefined): void {
    begin({});
    stopBlock(index);
    lastIndex = index;
    if (++blocks > MAX_BLOCKS) throw broken("it has too many blocks").with({ fault: "oversized" });
    const sequence = serializer.addSequence();
    const block = isObject(value) ? readBlock(value, sequence, context) : undefined;
    // Deltas of an invalid block are dropped, not added to another block.
    open.set(index, block ?? { delta: () => true, stop: () => sequence.end() });
  }

  function continueBlock(index: number, value: Json | undefined): void {
    if (!isObject(value)) return;
    if (open.get(index)?.delta(value) === true) return;
    const type = impliedType(value);
    if (type === undefined) return;
    // The start of the block is missing, but its type follows from the delta.
    startBlock(index, { type });
    open.get(index)?.delta(value);
  }

  function stopBlock(index: number): void {
    const block = open.get(index);
    open.delete(index);
    block?.stop();
  }

  function stopAll(): void {
    for (const index of [...open.keys()]) stopBlock(index);
  }

  /** Reads the finish reason. Members that are null count as absent. */
  function readStopMembers(delta: JsonObject): void {
    for (const name of STOP_MEMBERS) stop[name] = delta[name] ?? stop[name];
  }

  function finish(): void {
    begin({});
    stopAll();
    const { stop_reason, stop_sequence, stop_details } = stop;
    const explanation = nonEmptyStringOf(objectOf(stop_details)?.explanation);
    if (stop_reason === "refusal" && explanation !== undefined) {
      const sequence = serializer.addSequence();
      sequence.open({ type: "refusal" });
      sequence.delta(explanation);
      sequence.end();
    }
    const reason = readFinish(stop_reason, calls > 0);
    emit(finishEvent(reason, { stopSequence: stringOf(stop_sequence), usage: usage.total() }));
  }

  function readEvent(body: Json | undefined): void {
    if (!isObject(body)) throw broken("an event is not a JSON object");
    throwError(body);
    const ownIndex = numberOf(body.index);
    const index = ownIndex ?? lastIndex;
    switch (body.type) {
      case "message_start":
        return startMessage(body.message);
      case "content_block_start":
        return startBlock(ownIndex ?? lastIndex + 1, body.content_block);
      case "content_block_delta":
        return continueBlock(index, body.delta);
      case "content_block_stop":
        return stopBlock(index);
      case "message_delta":
        begin({});
        usage.update(body.usage);
        if (isObject(body.delta)) readStopMembers(body.delta);
        return;
      case "message_stop":
        return finish();
    }
  }

  function take(): ReplyEvent[] {
    const emitted = events;
    events = [];
    return emitted;
  }

  return answerReader({
    read(body) {
      readEvent(body);
      if (keptLength + serializer.waitingSize > MAX_KEPT) throw broken("it is too long");
      return take();
    },
    end() {
      // Some servers omit the last event, but never the finish reason.
      if (typeof stop.stop_reason !== "string") throw cutAnswerError();
      finish();
      return take();
    },
    unsent: take,
  });
}

function readFinish(stopReason: Json | undefined, hasCalls: boolean): FinishReason {
  return settledReason(FINISH_REASONS.get(stringOf(stopReason) ?? "") ?? "end", hasCalls);
}

/** Returns the type of block that a delta belongs to; undefined if it is empty. @throws for a piece of a call */
function impliedType({ type, text, thinking, signature, citation, partial_json }: JsonObject): string | undefined {
  switch (type) {
    case "text_delta":
      return text === "" ? undefined : "text";
    case "citations_delta":
      return isObject(citation) ? "text" : undefined;
    case "thinking_delta":
      return thinking === "" ? undefined : "thinking";
    case "signature_delta":
      return signature === "" ? undefined : "thinking";
    case "input_json_delta":
      if (typeof partial_json !== "string" || partial_json.trim() === "") return undefined;
      throw broken("a call continues that was not started");
    default:
      return undefined;
  }
}

function broken(what: string): GatewayError {
  return new GatewayError("upstream", `Cannot read the upstream's answer: ${what}`);
}

const TEXT_MEMBERS = ["text", "thinking", "partial_json"] as const;

/** Applies to deltas of text, thinking and tool input. */
export const messagesTemplateRule: TemplateRule = {
  variableMember(event: JsonObject): VariableMember | undefined {
    const { delta, ...others } = event;
    if (!isObject(delta) || hasObject(others) || hasObject(delta)) return undefined;
    const name = TEXT_MEMBERS.find((name) => typeof delta[name] === "string" && delta[name] !== "");
    return name === undefined ? undefined : { holder: delta, name };
  },
  unread: [],
};

function hasObject(members: JsonObject): boolean {
  return Object.values(members).some((member) => typeof member === "object" && member !== null);
}

/**
 * Reads a message object, by turning it into the events of a stream.
 * @throws {GatewayError} `upstream` for anything else, or the error in its place
 */
export function readReply(body: JsonObject, origin: Origin): Reply {
  const machine = eventReader(origin);
  return aggregateEvents([...eventsOf(body).flatMap((event) => machine.push(event)), ...machine.end()]);
}

/** Reads the summary of a message object. @throws {GatewayError} as `UpstreamCodec.readSummary` */
export function readSummary(body: JsonObject, { tier }: Origin): ReplySummary {
  const blocks = objectsOf(contentOf(body));
  const hasCalls = blocks.some(({ type, name }) => type === "tool_use" && nonEmptyStringOf(name) !== undefined);
  const usage = usageReader(tier);
  usage.start(body.usage);
  usage.update(body.usage);
  return { finish: readFinish(body.stop_reason, hasCalls), usage: usage.total() };
}

/** Throws the error that an answer or event contains, if it has one. */
function throwError(body: JsonObject): void {
  if (body.type === "error" || isObject(body.error)) throw errorInside(body, errorOf(body.error));
}

function contentOf(body: JsonObject): Json[] {
  throwError(body);
  if (Array.isArray(body.content)) return body.content;
  throw new GatewayError("upstream", "Cannot read the upstream's answer: it has no content");
}

/** Returns the events of a stream for a whole message. */
function eventsOf(message: JsonObject): JsonObject[] {
  const { usage } = message;
  return [
    { type: "message_start", message },
    ...contentOf(message).flatMap((block, index) => [
      { type: "content_block_start", index, content_block: block },
      { type: "content_block_stop", index },
    ]),
    { type: "message_delta", delta: message, usage },
    { type: "message_stop" },
  ];
}
