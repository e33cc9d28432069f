/** Writes messages of an answer: adjacent text and refusals. */
import { countCodePoints, urlCitation } from "../canonical/citations.ts";
import type { Citation, TextRange } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import {
  itemAdded,
  itemDone,
  itemId,
  type ItemPosition,
  type ItemStatus,
  type OutputItem,
  type ResponsesEvent,
} from "./output_item.ts";

type Kind = "text" | "refusal";

/** A part being written. */
interface Part {
  kind: Kind;
  text: string;
  annotations: JsonObject[];
  /** Code points of the text before the current block, without those of `uncounted`. */
  counted: number;
  /** Text of earlier blocks whose code points no citation has needed yet. */
  uncounted: string;
  /** Text of the current block. */
  block: string;
}

/**
 * Adjacent text blocks are one part. The item and its parts open with their first text, so that an answer without text
 * leaves no empty message; a refusal counts even without text.
 */
export function messageItem(kind: Kind, position: ItemPosition): { item: OutputItem; events: ResponsesEvent[] } {
  const id = itemId("msg", position);
  const output_index = position.index;
  const content: JsonObject[] = [];
  let started = false;
  let part: Part | undefined;
  let current = kind;
  let citations: Citation[] = [];

  const at = () => ({ item_id: id, output_index, content_index: content.length });

  function endPart(): ResponsesEvent[] {
    if (part === undefined) return [];
    const { kind, text } = part;
    const value = writePart(part);
    const events: ResponsesEvent[] = [
      kind === "text"
        ? { type: "response.output_text.done", members: { ...at(), text, logprobs: [] } }
        : { type: "response.refusal.done", members: { ...at(), refusal: text } },
      { type: "response.content_part.done", members: { ...at(), part: value } },
    ];
    content.push(value);
    part = undefined;
    return events;
  }

  /** Returns the part of the block, which is opened if necessary. */
  function openPart(): { part: Part; events: ResponsesEvent[] } {
    if (part?.kind === current) return { part, events: [] };
    const events: ResponsesEvent[] = endPart();
    if (!started) events.push(itemAdded(output_index, { ...writeMessage("in_progress"), content: [] }));
    started = true;
    part = { kind: current, text: "", annotations: [], counted: 0, uncounted: "", block: "" };
    events.push({ type: "response.content_part.added", members: { ...at(), part: writePart(part) } });
    return { part, events };
  }

  function open(kind: Kind): ResponsesEvent[] {
    current = kind;
    if (part !== undefined) {
      part.uncounted += part.block;
      part.block = "";
    }
    return kind === "refusal" ? openPart().events : [];
  }

  function writeMessage(status: ItemStatus | "in_progress"): JsonObject {
    const parts = part === undefined ? [...content] : [...content, writePart(part)];
    return { type: "message", id, status, role: "assistant", content: parts };
  }

  const item: OutputItem = {
    join: (block) => block.type === "text" || block.type === "refusal" ? open(block.type) : undefined,
    delta(text) {
      const { part, events } = openPart();
      part.text += text;
      part.block += text;
      events.push(
        current === "text"
          ? { type: "response.output_text.delta", members: { ...at(), delta: text, logprobs: [] } }
          : { type: "response.refusal.delta", members: { ...at(), delta: text } },
      );
      return events;
    },
    citation(citation) {
      citations.push(citation);
      return [];
    },
    close() {
      if (citations.length === 0) return [];
      const { part, events } = openPart();
      // A citation covers the whole block, so its range is known only now.
      part.counted += countCodePoints(part.uncounted);
      part.uncounted = "";
      const range = { start: part.counted, end: part.counted + countCodePoints(part.block) };
      for (const citation of citations) {
        const annotation = writeAnnotation(citation, range);
        if (annotation === undefined) continue;
        events.push({
          type: "response.output_text.annotation.added",
          members: { ...at(), annotation_index: part.annotations.length, annotation },
        });
        part.annotations.push(annotation);
      }
      citations = [];
      return events;
    },
    done(status) {
      if (!started) return [];
      return [...endPart(), itemDone(output_index, writeMessage(status))];
    },
    value: (status) => started ? writeMessage(status) : undefined,
  };
  return { item, events: open(kind) };
}

function writePart({ kind, text, annotations }: Part): JsonObject {
  return kind === "text"
    ? { type: "output_text", text, annotations: [...annotations], logprobs: [] }
    : { type: "refusal", refusal: text };
}

/** Writes a citation; undefined if it has no URL. */
function writeAnnotation(citation: Citation, block: TextRange): JsonObject | undefined {
  if (citation.from === "responses") return citation.value;
  const cited = urlCitation(citation, block);
  return cited && { type: "url_citation", ...cited };
}
