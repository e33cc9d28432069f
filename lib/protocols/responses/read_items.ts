/** Items of an answer, each read into the blocks it stands for. */
import { isObject, type Json, type JsonObject, writeJson } from "../../json.ts";
import { stringOf } from "../members.ts";
import { type ItemReader, remainder } from "./item_reader.ts";
import { messageReader } from "./read_message.ts";
import type { Slot } from "./read_lane.ts";
import { reasoningReader } from "./read_reasoning.ts";

/** What a reader needs to know beside the item. */
export interface ItemOrigin {
  /** Issuer of the signatures. */
  issuer: string;
  /** Id of the answer, as far as it is known. */
  answer: string | undefined;
  /** How many items the answer had before this one. */
  number: number;
}

/** A reader for items of a type. */
export function itemReader(type: string, slot: Slot, origin: ItemOrigin): ItemReader {
  switch (type) {
    case "message":
      return messageReader(slot);
    case "reasoning":
      return reasoningReader(slot, origin.issuer);
    case "function_call":
      return callReader(slot, { member: "arguments", origin });
    case "custom_tool_call":
      return callReader(slot, { member: "input", origin });
    default:
      return foreignReader(slot);
  }
}

/** A call opens once it has a name: without one there is nothing to call. */
function callReader(
  slot: Slot,
  { member, origin }: { member: "arguments" | "input"; origin: ItemOrigin },
): ItemReader {
  const custom = member === "input";
  let begun: JsonObject = {};
  let name: string | undefined;
  let callId: string | undefined;
  let text = "";
  let opened = false;

  function know(item: JsonObject): void {
    name ??= stringOf(item.name) || undefined;
    callId ??= stringOf(item.call_id) || undefined;
  }

  function open(item: JsonObject): void {
    if (opened || name === undefined || callId === undefined) return;
    opened = true;
    const namespace = stringOf(item.namespace);
    slot.open({
      type: "tool_call",
      id: callId,
      name,
      ...(custom && { custom }),
      ...(namespace !== undefined && { namespace }),
    });
    slot.delta(text);
  }

  function say(piece: string): void {
    text += piece;
    if (opened) slot.delta(piece);
  }

  return {
    added(item) {
      begun = item;
      know(item);
      open(item);
    },
    event(type, event) {
      if (type.endsWith(".delta")) return say(stringOf(event.delta) ?? "");
      if (!type.endsWith(".done")) return;
      know(event);
      say(remainder(textOf(event[member]), text));
    },
    done(item = begun) {
      know(item);
      callId ??= stringOf(item.id) || inventedId(origin);
      open(item.namespace === undefined ? begun : item);
      say(remainder(textOf(item[member]), text));
      if (opened) slot.close();
      slot.end();
    },
  };
}

/** The id of a call that has none. */
function inventedId({ answer, number }: ItemOrigin): string {
  return `call_${answer ?? "answer"}_${number}`.replace(/[^A-Za-z0-9_-]/g, "").slice(-64);
}

/** Arguments are JSON text; some servers send the JSON itself. */
function textOf(value: Json | undefined): string | undefined {
  return isObject(value) ? writeJson(value) : stringOf(value);
}

/** An item that only this protocol knows passes whole. */
function foreignReader(slot: Slot): ItemReader {
  let begun: JsonObject | undefined;
  return {
    added(item) {
      begun = item;
    },
    event() {},
    done(item = begun) {
      if (item !== undefined) {
        slot.open({ type: "foreign", from: "responses", value: item });
        slot.close();
      }
      slot.end();
    },
  };
}
