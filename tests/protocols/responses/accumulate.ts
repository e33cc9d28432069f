/**
 * Accumulates a stream of the responses protocol into a response like the official SDKs, independently of our writer.
 * Each event must fit the ones before: sequence numbers without gaps, items and parts in order, deltas only into open
 * parts, `done` events equal to the accumulated deltas.
 */
import { assert, assertEquals } from "@std/assert";
import { isObject, type Json, type JsonObject, parseJson } from "../../../lib/json/mod.ts";
import type { Frame } from "../../../lib/protocols/codec.ts";

/** Result of a stream. */
export interface Accumulated {
  /** The response as built from the small events alone. */
  built: JsonObject;
  /** The response that the terminal event carries. */
  last: JsonObject;
  /** Types of all events, in order. */
  types: string[];
  /** The `error` event, if there was one. */
  error?: JsonObject;
}

/** The events of a stream: each frame's name is its type, and `[DONE]` comes last, once, without a name. */
export function parseFrames(frames: Frame[]): JsonObject[] {
  assertEquals(frames.at(-1), { data: "[DONE]" });
  return frames.slice(0, -1).map(({ event, data }, number) => {
    const value = object(parseJson(data));
    assertEquals(value.type, event);
    assertEquals(value.sequence_number, number);
    return value;
  });
}

/** Folds a stream. */
export function accumulate(frames: Frame[]): Accumulated {
  const events = parseFrames(frames);
  const output: JsonObject[] = [];
  const closed = new Set<number>();
  let created: JsonObject | undefined;
  let last: JsonObject | undefined;
  let error: JsonObject | undefined;

  function openItem(event: JsonObject): JsonObject {
    const index = number(event.output_index);
    const item = object(output[index]);
    assert(!closed.has(index), "the item is still open");
    if (event.item_id !== undefined) assertEquals(event.item_id, item.id);
    return item;
  }

  function inList(event: JsonObject, { list, index }: { list: string; index: string }): JsonObject {
    const parts = openItem(event)[list];
    assert(Array.isArray(parts), list);
    assertEquals(event[index], parts.length - 1, "the last part is the open one");
    return object(parts.at(-1));
  }
  const part = (event: JsonObject) => inList(event, { list: "content", index: "content_index" });
  const summary = (event: JsonObject) => inList(event, { list: "summary", index: "summary_index" });

  for (const event of events) {
    assertEquals(last, undefined, "nothing follows the terminal event");
    if (error !== undefined) assertEquals(event.type, "response.failed");
    const type = String(event.type);
    switch (type) {
      case "response.created":
        assertEquals(created, undefined);
        created = object(event.response);
        assertEquals([created.status, created.output, created.usage], ["in_progress", [], null]);
        break;
      case "response.in_progress":
        assertEquals(event.response, created);
        break;
      case "response.output_item.added":
        assertEquals(event.output_index, output.length);
        assertEquals(closed.size, output.length, "one item is open at a time");
        output.push(structuredClone(object(event.item)));
        break;
      case "response.content_part.added": {
        const { content } = openItem(event);
        assert(Array.isArray(content));
        assertEquals(event.content_index, content.length);
        content.push(structuredClone(object(event.part)));
        break;
      }
      case "response.reasoning_summary_part.added": {
        const { summary } = openItem(event);
        assert(Array.isArray(summary));
        assertEquals(event.summary_index, summary.length);
        summary.push(structuredClone(object(event.part)));
        break;
      }
      case "response.output_text.delta":
        assertEquals(event.logprobs, []);
        append(part(event), { member: "text", delta: event.delta });
        break;
      case "response.refusal.delta":
        append(part(event), { member: "refusal", delta: event.delta });
        break;
      case "response.reasoning_summary_text.delta":
        append(summary(event), { member: "text", delta: event.delta });
        break;
      case "response.function_call_arguments.delta":
        append(openItem(event), { member: "arguments", delta: event.delta });
        break;
      case "response.custom_tool_call_input.delta":
        append(openItem(event), { member: "input", delta: event.delta });
        break;
      case "response.output_text.annotation.added": {
        const { annotations } = part(event);
        assert(Array.isArray(annotations));
        assertEquals(event.annotation_index, annotations.length);
        annotations.push(structuredClone(object(event.annotation)));
        break;
      }
      case "response.output_text.done":
        assertEquals([event.text, event.logprobs], [part(event).text, []]);
        break;
      case "response.refusal.done":
        assertEquals(event.refusal, part(event).refusal);
        break;
      case "response.content_part.done":
        assertEquals(event.part, part(event));
        break;
      case "response.reasoning_summary_text.done":
        assertEquals(event.text, summary(event).text);
        break;
      case "response.reasoning_summary_part.done":
        assertEquals(event.part, summary(event));
        break;
      case "response.function_call_arguments.done": {
        const item = openItem(event);
        assertEquals([event.name, event.arguments], [item.name, item.arguments]);
        break;
      }
      case "response.custom_tool_call_input.done":
        assertEquals(event.input, openItem(event).input);
        break;
      case "response.output_item.done": {
        const item = openItem(event);
        const done = object(event.item);
        const { status: _now, encrypted_content: _token, ...spelled } = done;
        const { status: _then, ...built } = item;
        assertEquals(spelled, built);
        output[number(event.output_index)] = done;
        closed.add(number(event.output_index));
        break;
      }
      case "error":
        error = event;
        break;
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        last = object(event.response);
        assertEquals(`response.${last.status}`, type);
        break;
      default:
        throw new Error(`Unhandled response stream event "${type}"`);
    }
  }
  assert(created !== undefined && last !== undefined);
  return {
    built: { ...last, output },
    last,
    types: events.map(({ type }) => String(type)),
    ...(error !== undefined && { error }),
  };
}

function append(target: JsonObject, { member, delta }: { member: string; delta: Json | undefined }): void {
  assert(typeof target[member] === "string" && typeof delta === "string" && delta !== "", member);
  target[member] += delta;
}

function object(value: Json | undefined): JsonObject {
  assert(isObject(value), "an object");
  return value;
}

function number(value: Json | undefined): number {
  assert(typeof value === "number", "a number");
  return value;
}
