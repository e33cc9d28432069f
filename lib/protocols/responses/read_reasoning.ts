/** Reads the reasoning items of an answer, each as one block. */
import type { Signature } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { numberOf, objectOf, partTexts, stringOf } from "../members.ts";
import { type ItemReader, remainder } from "./read_message.ts";
import type { BlockSequence } from "../canonical/block_serializer.ts";

/** The member with the text: a summary, or the raw reasoning. */
type Source = "summary" | "content";

/** Creates the reader of a reasoning item. It reads the text of one member, with blank lines between the parts. */
export function reasoningReader(sequence: BlockSequence, issuer: string): ItemReader {
  const texts = new Map<number, string>();
  let startItem: JsonObject = {};
  let source: Source | undefined;
  let current: number | undefined;

  function addText(from: Source, index: number, text: string): void {
    if (text === "" || (source ?? from) !== from) return;
    if (source === undefined) sequence.open({ type: "reasoning" });
    else if (index !== current) sequence.delta("\n\n");
    source = from;
    current = index;
    texts.set(index, (texts.get(index) ?? "") + text);
    sequence.delta(text);
  }

  /** Adds the missing text of a part, unless another part follows it: the text would be in the wrong place. */
  function complete(from: Source, index: number, whole: string | undefined): void {
    const sent = texts.get(index);
    if (sent === undefined || index === current) addText(from, index, remainder(whole, sent ?? ""));
  }

  function readWholeItem(item: JsonObject): void {
    const summary = partTexts(item.summary);
    const from = source ?? (summary.some((text) => text !== "") ? "summary" : "content");
    (from === "summary" ? summary : partTexts(item.content)).forEach((text, index) => complete(from, index, text));
  }

  function readSignature(item: JsonObject): Signature | undefined {
    // At its end an item has another value than at its beginning.
    const value = stringOf(item.encrypted_content) || stringOf(startItem.encrypted_content);
    const id = stringOf(item.id) ?? stringOf(startItem.id);
    return value ? { issuer, value, ...(id !== undefined && { id }) } : undefined;
  }

  return {
    added(item) {
      startItem = item;
    },
    event(name, event) {
      const from: Source = name.startsWith("reasoning_summary") ? "summary" : "content";
      const index = numberOf(from === "summary" ? event.summary_index : event.content_index) ?? 0;
      if (name.endsWith(".delta")) addText(from, index, stringOf(event.delta) ?? "");
      else if (name.endsWith(".done")) {
        complete(from, index, stringOf(event.text) ?? stringOf(objectOf(event.part)?.text));
      }
    },
    done(item = startItem) {
      readWholeItem(item);
      const signature = readSignature(item);
      if (source === undefined && signature !== undefined) sequence.open({ type: "reasoning", hidden: true });
      sequence.end(signature);
    },
  };
}
