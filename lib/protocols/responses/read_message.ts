/** Reads the messages of an answer: texts and refusals, one block for each part. */
import type { Json, JsonObject } from "../../json/mod.ts";
import { numberOf, objectOf, objectsOf, stringOf } from "../members.ts";
import type { BlockSequence } from "../canonical/block_serializer.ts";
import { readLogprobs } from "../canonical/logprobs.ts";

/** Reads one item of an answer as blocks. Events may repeat text, which is read only once. */
export interface ItemReader {
  added(item: JsonObject): void;
  /** Reads an event of the item. @param name its type without `response.` */
  event(name: string, event: JsonObject): void;
  /** Ends the item. @param item the whole item, if the event has it */
  done(item: JsonObject | undefined): void;
}

/** Returns what the whole text has after the text that was sent; "" if it does not begin with that. */
export function remainder(whole: string | undefined, sent: string): string {
  return whole !== undefined && whole.startsWith(sent) ? whole.slice(sent.length) : "";
}

type Kind = "text" | "refusal";

/** A part of a message, as far as it was read. */
interface Part {
  kind: Kind;
  index: number;
  text: string;
  citations: number;
  state: "new" | "open" | "closed";
}

/** Limit of unfinished parts that are compared with a complete one. */
const MAX_COMPARED_PARTS = 64;

/** Creates the reader of a message. A part opens with its first text, but a refusal is a block even without text. */
export function messageReader(sequence: BlockSequence): ItemReader {
  const parts = new Map<string, Part>();
  /** Parts with text whose complete part has not come yet. */
  const unfinished = new Set<Part>();
  let open: Part | undefined;

  function partAt(kind: Kind, at: Json | undefined): Part {
    const index = numberOf(at) ?? 0;
    if (open?.index === index && open.kind === kind) return open;
    const key = `${kind} ${index}`;
    const part = parts.get(key) ?? { kind, index, text: "", citations: 0, state: "new" };
    parts.set(key, part);
    return part;
  }

  /** Returns the streamed part that belongs to a complete one. Some servers number streamed parts wrongly. */
  function partOf(kind: Kind, index: number, whole: string): Part {
    if (!parts.has(`${kind} ${index}`)) {
      for (const part of unfinished.values().take(MAX_COMPARED_PARTS)) {
        if (part.kind === kind && whole.startsWith(part.text)) return part;
      }
    }
    return partAt(kind, index);
  }

  function closePart(): void {
    if (open === undefined) return;
    open.state = "closed";
    open = undefined;
    sequence.close();
  }

  function openPart(part: Part): void {
    if (open === part) return;
    closePart();
    sequence.open({ type: part.kind });
    part.state = "open";
    open = part;
  }

  function addText(part: Part, text: string, logprobs: Json | undefined): void {
    if (text === "") return;
    openPart(part);
    sequence.logprobs(readLogprobs(logprobs));
    if (part.text === "") unfinished.add(part);
    part.text += text;
    sequence.delta(text);
  }

  /** Adds the missing text of a part. A closed part gets no more text, because its order would be wrong. */
  function complete(part: Part, whole: string | undefined, logprobs: Json | undefined): void {
    // The tokens belong to the whole text, not only to the rest of it.
    if (part.state !== "closed") addText(part, remainder(whole, part.text), part.text === "" ? logprobs : undefined);
    if (part.kind === "refusal" && part.state === "new") openPart(part);
  }

  function addCitations(part: Part, annotations: readonly JsonObject[]): void {
    for (const value of annotations) {
      if (part.state === "closed") return;
      openPart(part);
      part.citations++;
      sequence.citation({ from: "responses", value });
    }
  }

  function readWholePart(value: JsonObject, index: number): void {
    const kind = kindOf(value);
    const whole = stringOf(value[kind]) ?? "";
    const part = partOf(kind, index, whole);
    complete(part, whole, value.logprobs);
    if (kind === "text") addCitations(part, objectsOf(value.annotations).slice(part.citations));
    unfinished.delete(part);
    if (open === part) closePart();
  }

  return {
    added() {},
    event(name, event) {
      const kind: Kind = name.startsWith("refusal") ? "refusal" : "text";
      switch (name) {
        case "output_text.delta":
        case "refusal.delta":
          return addText(partAt(kind, event.content_index), stringOf(event.delta) ?? "", event.logprobs);
        case "output_text.done":
        case "refusal.done":
          return complete(partAt(kind, event.content_index), stringOf(event[kind]), event.logprobs);
        case "output_text.annotation.added":
          return addCitations(partAt(kind, event.content_index), objectsOf([event.annotation ?? null]));
        case "content_part.done": {
          const value = objectOf(event.part);
          if (value !== undefined) readWholePart(value, numberOf(event.content_index) ?? 0);
        }
      }
    },
    done(item) {
      const content = item?.content;
      if (typeof content === "string") readWholePart({ type: "output_text", text: content }, 0);
      else objectsOf(content).forEach(readWholePart);
      sequence.end();
    },
  };
}

function kindOf({ type }: JsonObject): Kind {
  return type === "refusal" ? "refusal" : "text";
}
