/** Reads the items of an answer from events, which servers assign to items in different ways. */
import { Buffer } from "node:buffer";
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

/** Limit of items in one answer, and of blocks. */
const MAX_ITEMS = 4_096;

/** Limit of what is kept of unfinished items, in characters. */
const MAX_KEPT = 16 * 1024 * 1024;

/** Reads one answer. No method throws: a failed answer ends with an error event. */
export interface ResponseItems {
  /** Reads the beginning of an item. @param index its index in the output, if the event has it */
  added(item: JsonObject, index: number | undefined): ReplyEvent[];
  done(item: JsonObject, index: number | undefined): ReplyEvent[];
  /** Reads an event of an item. @param name its type without `response.` @param type the type of the item */
  event(name: string, event: JsonObject, type: string): ReplyEvent[];
  /**
   * Ends the answer.
   * @param response the response object of the last event
   * @param end the name of the last event, without `response.`
   */
  end(response: JsonObject, end: string): ReplyEvent[];
}

interface Entry {
  type: string;
  id: string | undefined;
  callId: string | undefined;
  index: number | undefined;
  reader: ItemReader;
  /** True after an event with the item itself, at its beginning or end. */
  isAnnounced: boolean;
  /** True if two events had the same id. */
  hasStableId: boolean;
  isOver: boolean;
  /** Characters that are kept of the item. */
  keptLength: number;
}

/** The members by which an event identifies its item. */
interface ItemIdentification {
  id: string | undefined;
  index: number | undefined;
}

const NO_IDENTIFICATION: ItemIdentification = { id: undefined, index: undefined };

/** Creates a reader of an answer. @param answerId returns the id of the answer; undefined while it is unknown */
export function responseItems(
  { issuer, tier: requestedTier }: Origin,
  answerId: () => string | undefined,
): ResponseItems {
  const serializer = new BlockSerializer(emit);
  let events: ReplyEvent[] = [];
  const entries: Entry[] = [];
  const byId = new Map<string, Entry>();
  const byIndex = new Map<string, Entry>();
  const byCall = new Map<string, Entry>();
  let keptLength = 0;
  let calls = 0;
  let blocks = 0;
  let refusalIndex: number | undefined;
  let hasRefusalText = false;

  function createEntry(type: string, { id, index }: ItemIdentification): Entry {
    const number = entries.length;
    const reader = itemReader(type, serializer.addSequence(), { issuer, answer: answerId(), number });
    const entry: Entry = {
      // A copy: the type itself may be a slice of its event, which it would keep in memory.
      type: Buffer.from(type).toString(),
      id,
      callId: undefined,
      index,
      reader,
      isAnnounced: false,
      hasStableId: false,
      isOver: false,
      keptLength: 0,
    };
    entries.push(entry);
    if (id !== undefined) byId.set(id, entry);
    if (index !== undefined) byIndex.set(`${type} ${index}`, entry);
    return entry;
  }

  function announce(entry: Entry, item: JsonObject): void {
    entry.isAnnounced = true;
    entry.id ??= stringOf(item.id);
    entry.callId ??= stringOf(item.call_id);
    if (entry.id !== undefined) byId.set(entry.id, entry);
    if (entry.callId !== undefined) byCall.set(entry.callId, entry);
  }

  function keep(entry: Entry, characters: number): void {
    entry.keptLength += characters;
    keptLength += characters;
  }

  function entryById(type: string, id: string | undefined): Entry | undefined {
    const entry = id === undefined ? undefined : byId.get(id);
    return entry?.type === type ? entry : undefined;
  }

  /**
   * Returns the item of an event; undefined for a new item. The id decides first, because some servers give several
   * items the same index. Other servers give each event an id of its own: their ids never repeat, and so the index
   * decides.
   */
  function findEntry(type: string, { id, index }: ItemIdentification): Entry | undefined {
    const known = entryById(type, id);
    if (known !== undefined) {
      known.hasStableId = true;
      return known;
    }
    if (index === undefined) {
      const last = entries.findLast((entry) => entry.type === type && !entry.isOver);
      return id === undefined || last?.id === undefined ? last : undefined;
    }
    const found = byIndex.get(`${type} ${index}`);
    if (found === undefined || id === undefined || found.id === undefined) return found;
    return found.isOver || found.hasStableId ? undefined : found;
  }

  function finishEntry(entry: Entry, item: JsonObject | undefined): void {
    if (entry.isOver) return;
    entry.isOver = true;
    entry.reader.done(item);
    // The reader has the text of its item, which is not needed any more.
    entry.reader = FINISHED;
    keptLength -= entry.keptLength;
    entry.keptLength = 0;
  }

  /** Returns the known item for each item of the final output; undefined for those without earlier events. */
  function matchOutput(output: readonly JsonObject[]): (Entry | undefined)[] {
    const free = new Set(entries);
    const take = (entry: Entry | undefined): Entry | undefined =>
      entry !== undefined && free.delete(entry) ? entry : undefined;
    const exact = output.map((item) => take(entryById(typeOf(item), stringOf(item.id))) ?? take(entryByCallId(item)));
    const ofType = Map.groupBy(entries.toReversed(), ({ type }) => type);
    const ofCall = Map.groupBy(entries.toReversed(), ({ type, callId }) => callOf(type, callId));
    // The first free entry of a list that begins with the last one.
    const firstOf = (list: Entry[] = []): Entry | undefined => {
      while (list.length > 0 && !free.has(list.at(-1) as Entry)) list.pop();
      return list.at(-1);
    };
    return output.map((item, index) => {
      if (exact[index] !== undefined) return exact[index];
      const { call_id: callId } = item;
      const type = typeOf(item);
      const found = byIndex.get(`${type} ${index}`);
      const fits = found !== undefined && free.has(found) && found.type === type &&
        (found.callId === undefined || callId === undefined || found.callId === callId);
      if (fits) return take(found);
      if (callId === undefined) return take(firstOf(ofType.get(type)));
      return take(firstOf(ofCall.get(callOf(type, callId))) ?? firstOf(ofCall.get(callOf(type))));
    });
  }

  function entryByCallId(item: JsonObject): Entry | undefined {
    const callId = stringOf(item.call_id);
    const entry = callId === undefined ? undefined : byCall.get(callId);
    return entry?.type === typeOf(item) ? entry : undefined;
  }

  /** Emits an event, and records what the finish reason depends on. */
  function emit(event: ReplyEvent): void {
    if (event.type === "delta" && event.index === refusalIndex) hasRefusalText = true;
    if (event.type === "open") {
      blocks++;
      if (event.block.type === "tool_call") calls++;
      if (event.block.type === "refusal") refusalIndex = event.index;
    }
    if (blocks <= MAX_ITEMS) events.push(event);
  }

  function take(): ReplyEvent[] {
    const emitted = events;
    events = [];
    if (blocks > MAX_ITEMS) return [...emitted, tooMuch("it has too many parts")];
    if (keptLength + serializer.waitingSize <= MAX_KEPT && entries.length <= MAX_ITEMS) return emitted;
    return [...emitted, tooMuch("it leaves too much unfinished")];
  }

  return {
    added(item, index) {
      const identification = { id: stringOf(item.id), index };
      const type = typeOf(item);
      const called = entryByCallId(item);
      // Some servers give several calls the same id.
      const isRepeated = called !== undefined && !(called.isOver && called.index !== index);
      if (entryById(type, identification.id)?.isAnnounced === true || isRepeated) return [];
      // Events of an item may come before the item itself.
      const early = findEntry(type, identification);
      const entry = early === undefined || early.isOver || early.isAnnounced
        ? createEntry(type, identification)
        : early;
      announce(entry, item);
      keep(entry, JSON.stringify(item).length);
      entry.reader.added(item);
      return take();
    },
    done(item, index) {
      const identification = { id: stringOf(item.id), index };
      const type = typeOf(item);
      const called = entryByCallId(item);
      const found = called ?? findEntry(type, identification);
      const isOther = found !== undefined && called === undefined && found.callId !== undefined &&
        stringOf(item.call_id) !== undefined;
      const entry = found === undefined || isOther ? createEntry(type, identification) : found;
      if (!entry.isOver) announce(entry, item);
      finishEntry(entry, item);
      return take();
    },
    event(name, event, type) {
      const identification = { id: stringOf(event.item_id), index: numberOf(event.output_index) };
      const entry = findEntry(type, identification) ?? createEntry(type, identification);
      if (entry.isOver) return [];
      if (typeof event.delta === "string") keep(entry, event.delta.length);
      entry.reader.event(name, event);
      return take();
    },
    end(response, end) {
      const failure = failureOf(response, end);
      if (failure !== undefined) return [{ type: "error", error: failure }];
      const output = objectsOf(response.output).filter((item) => typeOf(item) !== "");
      if (output.length > MAX_ITEMS) return [tooMuch("it has too many items")];
      const matched = entries.length === 0 ? [] : matchOutput(output);
      const wholeItems = new Map(matched.map((entry, index) => [entry, output[index]]));
      for (const entry of entries) finishEntry(entry, wholeItems.get(entry));
      for (const [index, item] of output.entries()) {
        if (matched[index] === undefined) finishEntry(createEntry(typeOf(item), NO_IDENTIFICATION), item);
      }
      const events = take();
      if (events.at(-1)?.type === "error") return events;
      const content = { hasCalls: calls > 0, isSilentRefusal: refusalIndex !== undefined && !hasRefusalText };
      return [...events, {
        type: "finish",
        reason: finishOf(response, end, content),
        usage: usageOf(response, requestedTier),
      }];
    },
  };
}

/** Returns a text that is equal for items with the same type and call id. */
function callOf(type: string, callId?: Json): string {
  return JSON.stringify([type, callId]);
}

const FINISHED: ItemReader = { added() {}, event() {}, done() {} };

/** Returns the error of a failed answer; undefined if it did not fail. @param end as `ResponseItems.end` */
export function failureOf({ status, error = null }: JsonObject, end: string): GatewayError | undefined {
  if (![status, end].some((word) => word === "failed" || word === "cancelled")) return undefined;
  return errorInside({ error }, readOpenaiError(200, { error }));
}

/**
 * Returns the finish reason of a response.
 * @param end as `ResponseItems.end`
 * @param content whether the output has calls, and whether it has a refusal without text
 */
export function finishOf(
  { status, incomplete_details }: JsonObject,
  end: string,
  { hasCalls, isSilentRefusal }: { hasCalls: boolean; isSilentRefusal: boolean },
): FinishReason {
  const isIncomplete = status === "incomplete" || end === "incomplete";
  if (isIncomplete && objectOf(incomplete_details)?.reason !== "content_filter") return "length";
  if (hasCalls) return "tool_use";
  // As in chat, an answer with the text of a refusal has an ordinary end.
  return isIncomplete || isSilentRefusal ? "refusal" : "end";
}

/** Returns the usage of a response. */
export function usageOf(
  { usage, service_tier, tool_usage }: JsonObject,
  requestedTier: string | undefined,
): TokenUsage {
  const searches = countOf(objectOf(objectOf(tool_usage)?.web_search)?.num_requests) ?? 0;
  return withReported(readUsage(usage), {
    tier: stringOf(service_tier),
    requestedTier,
    hostedCalls: { web_search: searches },
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
