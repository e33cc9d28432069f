/** Reads answers of responses upstreams, streamed or not. */
import { aggregateEvents } from "../canonical/aggregate_events.ts";
import { answerReader } from "../canonical/finish.ts";
import type { Machine, Reply, ReplyEvent, ReplySummary } from "../canonical/types.ts";
import { cutAnswerError, GatewayError } from "../../errors.ts";
import { isObject, type JsonObject, tryParse } from "../../json/mod.ts";
import { templateParser, type TemplateRule, valueOf, type VariableMember } from "../frame_template.ts";
import type { Frame } from "../codec.ts";
import { nonEmptyStringOf, numberOf, objectOf, objectsOf, present, stringOf } from "../members.ts";
import type { Origin } from "../upstream_codec.ts";
import { failureOf, finishOf, responseItems, typeOf, usageOf } from "./response_items.ts";
import { readOpenaiError } from "../read_openai_error.ts";
import { errorInside } from "../vendor_error.ts";

const PREFIX = "response.";

/** Names of the events that end a stream. Some servers send `done` for all of them. */
const FINAL_EVENTS = new Set(["completed", "incomplete", "failed", "cancelled", "done"]);

/** The name of the last event for an answer that is not streamed. */
const WHOLE = "done";

/** Types of items that are calls of the client's tools. */
const CALLS: ReadonlySet<string> = new Set(["function_call", "custom_tool_call"]);

/** Types of items, by the first word of the names of their events. */
const ITEM_TYPES = new Map([
  ["output_text", "message"],
  ["refusal", "message"],
  ["content_part", "message"],
  ["reasoning_summary_part", "reasoning"],
  ["reasoning_summary_text", "reasoning"],
  ["reasoning_text", "reasoning"],
  // The name in Open Responses.
  ["reasoning", "reasoning"],
  ["function_call_arguments", "function_call"],
  ["custom_tool_call_input", "custom_tool_call"],
]);

/**
 * Creates a reader of frames. It ignores `[DONE]`, comments in data and unknown events. Only a final event completes an
 * answer.
 */
export function streamReader(origin: Origin): Machine<Frame, ReplyEvent> {
  let id: string | undefined;
  let started = false;
  const answer = responseItems(origin, () => id);
  /** The type of the latest event, which most events share with the previous one. */
  let latest = eventType(PREFIX);
  const parse = templateParser(tryParse, responsesTemplateRule);

  function start(): ReplyEvent[] {
    if (started) return [];
    started = true;
    return [{ type: "start", ...present({ id }) }];
  }

  /** Returns the events, after the start if it is missing. */
  function withStart(events: ReplyEvent[]): ReplyEvent[] {
    // An answer that fails before any other event has no start, so the response can have the status of the error.
    if (started || (events.length === 1 && events[0]?.type === "error")) return events;
    return [...start(), ...events];
  }

  function readEvent({ name, item: type }: EventType, event: JsonObject): ReplyEvent[] {
    if (type !== undefined) {
      const isReasoning = objectOf(event.part)?.type === "reasoning_text";
      return withStart(answer.event(name, event, isReasoning ? "reasoning" : type));
    }
    const index = numberOf(event.output_index);
    const item = objectOf(event.item);
    if (FINAL_EVENTS.has(name)) return withStart(answer.end(objectOf(event.response) ?? {}, name));
    if (name === "output_item.added" || name === "output_item.done") {
      if (item === undefined || typeOf(item) === "") return [];
      return withStart(name === "output_item.added" ? answer.added(item, index) : answer.done(item, index));
    }
    return start();
  }

  return answerReader({
    read(frame) {
      const { event: frameType, data } = frame;
      if (data === "" || data === "[DONE]" || data.startsWith(":")) return [];
      const event = valueOf(frame, parse);
      if (!isObject(event)) {
        throw new GatewayError("upstream", "Cannot read the model's answer: an event is not JSON");
      }
      const type = stringOf(event.type) ?? frameType ?? "";
      // Servers put errors into streams in many forms, but these names are only those of errors.
      if (type === "error" || type === "response.error" || (!type.startsWith(PREFIX) && isObject(event.error))) {
        throw errorInside(event, readOpenaiError(200, event));
      }
      if (!type.startsWith(PREFIX)) return [];
      id ??= stringOf(objectOf(event.response)?.id);
      if (latest.type !== type) latest = eventType(type);
      return readEvent(latest, event);
    },
    end() {
      throw cutAnswerError();
    },
  });
}

/** The type of an event, taken apart. */
interface EventType {
  type: string;
  /** The type without `response.` */
  name: string;
  /** The type of the event's item; undefined for events that are not of an item. */
  item: string | undefined;
}

function eventType(type: string): EventType {
  const name = type.slice(PREFIX.length);
  const end = name.indexOf(".");
  return { type, name, item: ITEM_TYPES.get(end < 0 ? name : name.slice(0, end)) };
}

/** Reads a response object. @throws {GatewayError} `upstream` for anything else, or the error in its place */
export function readReply(body: JsonObject, origin: Origin): Reply {
  checkResponse(body);
  const id = stringOf(body.id);
  return aggregateEvents([{ type: "start", ...present({ id }) }, ...responseItems(origin, () => id).end(body, WHOLE)]);
}

/** Reads the summary of a response object. @throws {GatewayError} as `UpstreamCodec.readSummary` */
export function readSummary(body: JsonObject, { tier }: Origin): ReplySummary {
  checkResponse(body);
  const failure = failureOf(body, WHOLE);
  if (failure !== undefined) throw failure;
  const items = objectsOf(body.output);
  const refusals = items.filter((item) => typeOf(item) === "message")
    .flatMap(({ content }) => objectsOf(content).filter(({ type }) => type === "refusal"));
  const content = {
    hasCalls: items.some((item) => CALLS.has(typeOf(item)) && nonEmptyStringOf(item.name) !== undefined),
    isSilentRefusal: refusals.length > 0 && refusals.every(({ refusal }) => nonEmptyStringOf(refusal) === undefined),
  };
  return { finish: finishOf(body, WHOLE, content), usage: usageOf(body, tier) };
}

/** Throws unless a body is a response that has ended. */
function checkResponse(body: JsonObject): void {
  const status = stringOf(body.status);
  if (status === undefined && isObject(body.error)) throw errorInside(body, readOpenaiError(200, body));
  if (!Array.isArray(body.output) && (status === undefined || status === "completed")) {
    throw new GatewayError("upstream", "Cannot read the model's answer: it is not a response");
  }
  if (status === "in_progress" || status === "queued") {
    throw new GatewayError("upstream", `Cannot read the model's answer: it is still "${status}"`);
  }
}

/** Applies to events with a delta of text, reasoning or arguments. */
export const responsesTemplateRule: TemplateRule = {
  variableMember(event: JsonObject): VariableMember | undefined {
    if (Object.values(event).some(isObject)) return undefined;
    return typeof event.delta === "string" && event.delta !== "" ? { holder: event, name: "delta" } : undefined;
  },
  // OpenAI pads events with random text to hide the length of their content.
  unread: ["sequence_number", "obfuscation"],
};
