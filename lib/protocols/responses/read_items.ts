/** Reads the items of an answer as blocks. */
import { isObject, type Json, type JsonObject, writeJson } from "../../json/mod.ts";
import { nonEmptyStringOf, present, stringOf } from "../members.ts";
import { type ItemReader, messageReader, remainder } from "./read_message.ts";
import type { BlockSequence } from "../canonical/block_serializer.ts";
import { reasoningReader } from "./read_reasoning.ts";

/** The parts of an answer that the reader of an item needs. */
export interface ItemOrigin {
  /** The issuer of signatures. */
  issuer: string;
  /** Id of the answer; undefined while it is unknown. */
  answer: string | undefined;
  /** Number of items before this one. */
  number: number;
}

/** Creates the reader of an item. */
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

/** Creates the reader of a call. Its block opens as soon as name and id are known. */
function callReader(
  sequence: BlockSequence,
  { member, origin }: { member: "arguments" | "input"; origin: ItemOrigin },
): ItemReader {
  const custom = member === "input";
  let startItem: JsonObject = {};
  let name: string | undefined;
  let callId: string | undefined;
  let text = "";

  function readIdentity(item: JsonObject): void {
    name ??= nonEmptyStringOf(item.name);
    callId ??= nonEmptyStringOf(item.call_id);
  }

  function open(item: JsonObject): void {
    if (sequence.isOpen || name === undefined || callId === undefined) return;
    const namespace = stringOf(item.namespace);
    sequence.open({ type: "tool_call", id: callId, name, ...(custom && { custom }), ...present({ namespace }) });
    sequence.delta(text);
  }

  function addText(piece: string): void {
    text += piece;
    if (sequence.isOpen) sequence.delta(piece);
  }

  return {
    added(item) {
      startItem = item;
      readIdentity(item);
      open(item);
    },
    event(type, event) {
      if (type.endsWith(".delta")) return addText(stringOf(event.delta) ?? "");
      if (!type.endsWith(".done")) return;
      readIdentity(event);
      addText(remainder(textOf(event[member]), text));
    },
    done(item = startItem) {
      readIdentity(item);
      callId ??= stringOf(item.id) || generatedId(origin);
      open(item.namespace === undefined ? startItem : item);
      addText(remainder(textOf(item[member]), text));
      sequence.end();
    },
  };
}

function generatedId({ answer, number }: ItemOrigin): string {
  return `call_${(answer ?? "answer").slice(-64)}_${number}`.replace(/[^A-Za-z0-9_-]/g, "").slice(-64);
}

/** Returns the arguments or input of a call. Arguments are JSON text, but some servers send an object. */
function textOf(value: Json | undefined): string | undefined {
  return isObject(value) ? writeJson(value) : stringOf(value);
}

function vendorSpecificReader(sequence: BlockSequence): ItemReader {
  let startItem: JsonObject | undefined;
  return {
    added(item) {
      startItem = item;
    },
    event() {},
    done(item = startItem) {
      if (item !== undefined) sequence.open({ type: "vendor_specific", from: "responses", value: item });
      sequence.end();
    },
  };
}
