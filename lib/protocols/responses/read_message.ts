/** Reads messages of an answer: text and refusals, one block for each part. */
import type { Json, JsonObject } from "../../json/mod.ts";
import { numberOf, objectOf, objectsOf, stringOf } from "../members.ts";
import type { BlockSequence } from "../canonical/block_serializer.ts";

/** Reads one item of an answer into its blocks. Repeated text is dropped. */
export interface ItemReader {
  /** Takes the item as it begins. */
  added(item: JsonObject): void;
  /** Takes an event of the item. @param name its type without `response.` */
  event(name: string, event: JsonObject): void;
  /** Ends the item; `item` is the whole item, if known. */
  done(item: JsonObject | undefined): void;
}

/** Returns the part of the whole text that is still missing; nothing if the two do not agree. */
export function remainder(complete: string | undefined, sent: string): string {
  return complete !== undefined && complete.startsWith(sent) ? complete.slice(sent.length) : "";
}

type Kind = "text" | "refusal";

/** A part as read so far. */
interface Part {
  kind: Kind;
  index: number;
  text: string;
  citations: number;
  state: "new" | "open" | "closed";
}

/** Unfinished parts that are compared with a complete one. */
const COMPARED = 64;

/** Returns a reader of messages. A part opens with its first text; a refusal counts even without text. */
export function messageReader(sequence: BlockSequence): ItemReader {
  const parts = new Map<string, Part>();
  /** Parts with text, before the complete part was seen. */
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

  /** Finds the streamed part that belongs to a complete one. Some servers number stream parts wrongly. */
  function partOf(kind: Kind, index: number, complete: string): Part {
    if (!parts.has(`${kind} ${index}`)) {
      for (const part of unfinished.values().take(COMPARED)) {
        if (part.kind === kind && complete.startsWith(part.text)) return part;
      }
    }
    return partAt(kind, index);
  }

  function leave(): void {
    if (open === undefined) return;
    open.state = "closed";
    open = undefined;
    sequence.close();
  }

  function enter(part: Part): void {
    if (open === part) return;
    leave();
    sequence.open({ type: part.kind });
    part.state = "open";
    open = part;
  }

  function pushText(part: Part, text: string): void {
    if (text === "") return;
    enter(part);
    if (part.text === "") unfinished.add(part);
    part.text += text;
    sequence.delta(text);
  }

  /** Adds the missing text of a part. A closed part gets no more text, because its order would be wrong. */
  function complete(part: Part, completeText: string | undefined): void {
    if (part.state !== "closed") pushText(part, remainder(completeText, part.text));
    if (part.kind === "refusal" && part.state === "new") enter(part);
  }

  function cite(part: Part, annotations: readonly JsonObject[]): void {
    for (const value of annotations) {
      if (part.state === "closed") return;
      enter(part);
      part.citations++;
      sequence.citation({ from: "responses", value });
    }
  }

  function takeWhole(value: JsonObject, index: number): void {
    const kind = kindOf(value);
    const text = stringOf(value[kind]) ?? "";
    const part = partOf(kind, index, text);
    complete(part, text);
    if (kind === "text") cite(part, objectsOf(value.annotations).slice(part.citations));
    unfinished.delete(part);
    if (open === part) leave();
  }

  return {
    added() {},
    event(name, event) {
      const kind: Kind = name.startsWith("refusal") ? "refusal" : "text";
      switch (name) {
        case "output_text.delta":
        case "refusal.delta":
          return pushText(partAt(kind, event.content_index), stringOf(event.delta) ?? "");
        case "output_text.done":
        case "refusal.done":
          return complete(partAt(kind, event.content_index), stringOf(event[kind]));
        case "output_text.annotation.added":
          return cite(partAt(kind, event.content_index), objectsOf([event.annotation ?? null]));
        case "content_part.done": {
          const value = objectOf(event.part);
          if (value !== undefined) takeWhole(value, numberOf(event.content_index) ?? 0);
        }
      }
    },
    done(item) {
      const content = item?.content;
      if (typeof content === "string") takeWhole({ type: "output_text", text: content }, 0);
      else objectsOf(content).forEach(takeWhole);
      sequence.end();
    },
  };
}

function kindOf({ type }: JsonObject): Kind {
  return type === "refusal" ? "refusal" : "text";
}
