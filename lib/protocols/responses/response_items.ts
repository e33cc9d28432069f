/** Collects the items of an answer, whose events servers identify in different ways. */
import { BlockSerializer } from "../canonical/block_serializer.ts";
import type { FinishReason, ReplyEvent, TokenUsage } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";
import type { Json, JsonObject } from "../../json/mod.ts";
import { withReported } from "../extras.ts";
import { countOf, numberOf, objectOf, objectsOf, stringOf } from "../members.ts";
import type { Origin } from "../upstream_codec.ts";
import type { ItemReader } from "./read_message.ts";
import { readOpenaiError } from "../read_openai_error.ts";
import { errorInside } from "../vendor_error.ts";
import { itemReader } from "./read_items.ts";
import { readUsage } from "./responses_usage.ts";

/** Most items of one answer, and most blocks. */
const ITEMS = 4_096;

/** Most characters kept of unfinished items. */
const HELD_CHARACTERS = 16 * 1024 * 1024;

/** An answer being read. No method throws; a failed answer ends with an error event. */
export interface ResponseItems {
  /** Takes the beginning of an item. */
  added(item: JsonObject, index: number | undefined): ReplyEvent[];
  /** Takes the end of an item. */
  done(item: JsonObject, index: number | undefined): ReplyEvent[];
  /** Takes an event of an item. @param name its type without `response.`; @param type type of the item */
  event(name: string, event: JsonObject, type: string): ReplyEvent[];
  /** Ends the answer. @param end name of the last event */
  end(response: JsonObject, end: string): ReplyEvent[];
}

/** A known item. */
interface Entry {
  type: string;
  id: string | undefined;
  callId: string | undefined;
  index: number | undefined;
  reader: ItemReader;
  /** True after its beginning or its end. */
  announced: boolean;
  /** True if two events had the same id. */
  steady: boolean;
  over: boolean;
  held: number;
}

/** Identification of an item in an event. */
interface ItemIdentification {
  id: string | undefined;
  index: number | undefined;
}

/** Reads an answer from the events of its items. @param answerId returns the id of the answer, once known */
export function responseItems({ issuer, tier: asked }: Origin, answerId: () => string | undefined): ResponseItems {
  const serializer = new BlockSerializer(emit);
  let out: ReplyEvent[] = [];
  const entries: Entry[] = [];
  const byId = new Map<string, Entry>();
  const byIndex = new Map<string, Entry>();
  const byCall = new Map<string, Entry>();
  let held = 0;
  let calls = 0;
  let blocks = 0;
  /** Index of the refusal block, and whether it has text. */
  let refusal: number | undefined;
  let hasRefusalText = false;

  function create(type: string, { id, index }: ItemIdentification): Entry {
    const reader = itemReader(type, serializer.addSequence(), {
      issuer,
      answer: answerId(),
      number: entries.length,
    });
    const entry: Entry = {
      type,
      id,
      callId: undefined,
      index,
      reader,
      announced: false,
      steady: false,
      over: false,
      held: 0,
    };
    entries.push(entry);
    if (id !== undefined) byId.set(id, entry);
    if (index !== undefined) byIndex.set(`${type} ${index}`, entry);
    return entry;
  }

  function announce(entry: Entry, item: JsonObject): void {
    entry.announced = true;
    entry.id ??= stringOf(item.id);
    entry.callId ??= stringOf(item.call_id);
    if (entry.id !== undefined) byId.set(entry.id, entry);
    if (entry.callId !== undefined) byCall.set(entry.callId, entry);
  }

  function keep(entry: Entry, characters: number): void {
    entry.held += characters;
    held += characters;
  }

  function named(type: string, id: string | undefined): Entry | undefined {
    const entry = id === undefined ? undefined : byId.get(id);
    return entry?.type === type ? entry : undefined;
  }

  /**
   * Finds the item of an event. Ids take precedence, because some servers give several items one index; servers that
   * give each event an id of its own are recognized by ids that never repeat, and then the index decides.
   */
  function find(type: string, { id, index }: ItemIdentification): Entry | undefined {
    const known = named(type, id);
    if (known !== undefined) {
      known.steady = true;
      return known;
    }
    if (index === undefined) {
      const last = entries.findLast((entry) => entry.type === type && !entry.over);
      return id === undefined || last?.id === undefined ? last : undefined;
    }
    const found = byIndex.get(`${type} ${index}`);
    if (found === undefined || id === undefined || found.id === undefined) return found;
    return found.over || found.steady ? undefined : found;
  }

  function finish(entry: Entry, item: JsonObject | undefined): void {
    if (entry.over) return;
    entry.over = true;
    entry.reader.done(item);
    held -= entry.held;
    entry.held = 0;
  }

  /** Assigns known items to the output at the end of the answer; undefined for items without earlier events. */
  function match(output: readonly JsonObject[]): (Entry | undefined)[] {
    const free = new Set(entries);
    const take = (entry: Entry | undefined): Entry | undefined =>
      entry !== undefined && free.delete(entry) ? entry : undefined;
    const exact = output.map((item) => take(named(typeOf(item), stringOf(item.id))) ?? take(calledBy(item)));
    return output.map((item, index) => {
      if (exact[index] !== undefined) return exact[index];
      const type = typeOf(item);
      const fits = (entry: Entry | undefined): boolean =>
        entry !== undefined && free.has(entry) && entry.type === type &&
        (entry.callId === undefined || item.call_id === undefined || entry.callId === item.call_id);
      const found = byIndex.get(`${type} ${index}`);
      return take(fits(found) ? found : entries.find(fits));
    });
  }

  function calledBy(item: JsonObject): Entry | undefined {
    const callId = stringOf(item.call_id);
    const entry = callId === undefined ? undefined : byCall.get(callId);
    return entry?.type === typeOf(item) ? entry : undefined;
  }

  /** Emits an event and notes what the finish depends on. */
  function emit(event: ReplyEvent): void {
    if (event.type === "delta" && event.index === refusal) hasRefusalText = true;
    if (event.type === "open") {
      blocks++;
      if (event.block.type === "tool_call") calls++;
      if (event.block.type === "refusal") refusal = event.index;
    }
    if (blocks <= ITEMS) out.push(event);
  }

  function take(): ReplyEvent[] {
    const events = out;
    out = [];
    if (blocks > ITEMS) return [...events, tooMuch("it has too many parts")];
    if (held + serializer.waiting <= HELD_CHARACTERS && entries.length <= ITEMS) return events;
    return [...events, tooMuch("it leaves too much unfinished")];
  }

  function reason(incomplete: boolean, why: Json | undefined): FinishReason {
    if (incomplete && why !== "content_filter") return "length";
    if (calls > 0) return "tool_use";
    // A refusal with text is an ordinary end, as in chat.
    return incomplete || (refusal !== undefined && !hasRefusalText) ? "refusal" : "end";
  }

  return {
    added(item, index) {
      const identification = { id: stringOf(item.id), index };
      const type = typeOf(item);
      if (named(type, identification.id)?.announced === true || calledBy(item) !== undefined) return [];
      // Events may precede the item itself.
      const early = find(type, identification);
      const entry = early === undefined || early.over || early.announced ? create(type, identification) : early;
      announce(entry, item);
      keep(entry, JSON.stringify(item).length);
      entry.reader.added(item);
      return take();
    },
    done(item, index) {
      const identification = { id: stringOf(item.id), index };
      const type = typeOf(item);
      const called = calledBy(item);
      const found = called ?? find(type, identification);
      const other = found !== undefined && called === undefined && found.callId !== undefined &&
        stringOf(item.call_id) !== undefined;
      const entry = found === undefined || other ? create(type, identification) : found;
      if (!entry.over) announce(entry, item);
      finish(entry, item);
      return take();
    },
    event(name, event, type) {
      const identification = { id: stringOf(event.item_id), index: numberOf(event.output_index) };
      const entry = find(type, identification) ?? create(type, identification);
      if (entry.over) return [];
      if (typeof event.delta === "string") keep(entry, event.delta.length);
      entry.reader.event(name, event);
      return take();
    },
    end(response, end) {
      const status = stringOf(response.status);
      if ([status, end].some((word) => word === "failed" || word === "cancelled")) {
        const body = { error: response.error ?? null };
        return [{ type: "error", error: errorInside(body, readOpenaiError(200, body)) }];
      }
      const output = objectsOf(response.output).filter((item) => typeOf(item) !== "");
      if (output.length > ITEMS) return [tooMuch("it has too many items")];
      const matched = entries.length === 0 ? [] : match(output);
      const wholes = new Map(matched.map((entry, index) => [entry, output[index]]));
      for (const entry of entries) finish(entry, wholes.get(entry));
      output.forEach((item, index) => {
        if (matched[index] === undefined) finish(create(typeOf(item), { id: undefined, index: undefined }), item);
      });
      const events = take();
      if (events.at(-1)?.type === "error") return events;
      const incomplete = status === "incomplete" || end === "incomplete";
      const why = objectOf(response.incomplete_details)?.reason;
      return [...events, { type: "finish", reason: reason(incomplete, why), usage: usageOf(response, asked) }];
    },
  };
}

function usageOf({ usage, service_tier, tool_usage }: JsonObject, asked: string | undefined): TokenUsage {
  const searches = countOf(objectOf(objectOf(tool_usage)?.web_search)?.num_requests);
  return withReported(readUsage(usage), {
    tier: stringOf(service_tier),
    asked,
    ...(searches !== undefined && { hostedCalls: { web_search: searches } }),
  });
}

function tooMuch(what: string): ReplyEvent {
  const message = `Cannot read the model's answer: ${what}`;
  return { type: "error", error: new GatewayError("upstream", message, { fault: "oversized" }) };
}

/** Returns the type of an item; a message may omit it. */
export function typeOf(item: JsonObject): string {
  return stringOf(item.type) ?? (item.role === undefined ? "" : "message");
}
