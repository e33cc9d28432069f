/** Reads items of an answer into blocks. */
import { isObject, type Json, type JsonObject, writeJson } from "../../json/mod.ts";
import { stringOf } from "../members.ts";
import { type ItemReader, messageReader, remainder } from "./read_message.ts";
import type { BlockSequence } from "../canonical/block_serializer.ts";
import { reasoningReader } from "./read_reasoning.ts";

/** Facts about the answer of an item. */
export interface ItemOrigin {
  issuer: string;
  /** Id of the answer, once known. */
  answer: string | undefined;
  /** Number of items before this one. */
  number: number;
}

/** Returns a reader for items of a type. */
export function itemReader(type: string, sequence: BlockSequence, origin: ItemOrigin): ItemReader {
  switch (type) {
    case "message":
      return messageReader(sequence);
    case "reasoning":
      return reasoningReader(sequence, origin.issuer);
    case "function_call":
      return callReader(sequence, { member: "arguments", origin });
    case "custom_tool_call":
      return callReader(sequence, { member: "input", origin });
    default:
      return vendorSpecificReader(sequence);
  }
}

/** A call opens once its name is known. */
function callReader(
  sequence: BlockSequence,
  { member, origin }: { member: "arguments" | "input"; origin: ItemOrigin },
): ItemReader {
  const custom = member === "input";
  let begun: JsonObject = {};
  let name: string | undefined;
  let callId: string | undefined;
  let text = "";

  function know(item: JsonObject): void {
    name ??= stringOf(item.name) || undefined;
    callId ??= stringOf(item.call_id) || undefined;
  }

  function open(item: JsonObject): void {
    if (sequence.isOpen || name === undefined || callId === undefined) return;
    const namespace = stringOf(item.namespace);
    sequence.open({
      type: "tool_call",
      id: callId,
      name,
      ...(custom && { custom }),
      ...(namespace !== undefined && { namespace }),
    });
    sequence.delta(text);
  }

  function say(piece: string): void {
    text += piece;
    if (sequence.isOpen) sequence.delta(piece);
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
      sequence.end();
    },
  };
}

/** Returns an id for a call without one. */
function inventedId({ answer, number }: ItemOrigin): string {
  return `call_${answer ?? "answer"}_${number}`.replace(/[^A-Za-z0-9_-]/g, "").slice(-64);
}

/** Arguments are JSON text; some servers send a JSON value. */
function textOf(value: Json | undefined): string | undefined {
  return isObject(value) ? writeJson(value) : stringOf(value);
}

function vendorSpecificReader(sequence: BlockSequence): ItemReader {
  let begun: JsonObject | undefined;
  return {
    added(item) {
      begun = item;
    },
    event() {},
    done(item = begun) {
      if (item !== undefined) sequence.open({ type: "vendor_specific", from: "responses", value: item });
      sequence.end();
    },
  };
}
