/** Writes the messages of an answer, which have adjacent texts and refusals, as output items. */
import { countCodePoints, urlCitation } from "../canonical/citations.ts";
import { addTokens } from "../canonical/logprobs.ts";
import type { Citation, TextRange, TokenLogprob } from "../canonical/types.ts";
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

interface Part {
  kind: Kind;
  text: string;
  annotations: JsonObject[];
  logprobs: TokenLogprob[];
  /** Number of code points before the current block, without those of `uncounted`. */
  counted: number;
  /** Text of earlier blocks that is not counted yet: only citations need the count. */
  uncounted: string;
  block: string;
}

/**
 * Creates the item of a message. Adjacent text blocks are one part. The item and its parts open with their first text,
 * so that an answer without text has no empty message. A refusal opens even without text.
 */
export function messageItem(kind: Kind, position: ItemPosition): { item: OutputItem; events: ResponsesEvent[] } {
  const id = itemId("msg", position);
  const output_index = position.index;
  const content: JsonObject[] = [];
  let isAdded = false;
  let part: Part | undefined;
  let currentKind = kind;
  let citations: Citation[] = [];
  let logprobs: TokenLogprob[] = [];

  const location = () => ({ item_id: id, output_index, content_index: content.length });

  function endPart(): ResponsesEvent[] {
    if (part === undefined) return [];
    const { kind, text, logprobs } = part;
    const value = writePart(part);
    const events: ResponsesEvent[] = [
      kind === "text"
        ? { type: "response.output_text.done", members: { ...location(), text, logprobs } }
        : { type: "response.refusal.done", members: { ...location(), refusal: text } },
      { type: "response.content_part.done", members: { ...location(), part: value } },
    ];
    content.push(value);
    part = undefined;
    return events;
  }

  /** Returns the part of the current block, and opens it if necessary. */
  function openPart(): { part: Part; events: ResponsesEvent[] } {
    if (part?.kind === currentKind) return { part, events: [] };
    const events: ResponsesEvent[] = endPart();
    if (!isAdded) events.push(itemAdded(output_index, { ...writeMessage("in_progress"), content: [] }));
    isAdded = true;
    part = { kind: currentKind, text: "", annotations: [], logprobs: [], counted: 0, uncounted: "", block: "" };
    events.push({ type: "response.content_part.added", members: { ...location(), part: writePart(part) } });
    return { part, events };
  }

  function open(kind: Kind): ResponsesEvent[] {
    currentKind = kind;
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
      addTokens(part.logprobs, logprobs);
      events.push(
        currentKind === "text"
          ? { type: "response.output_text.delta", members: { ...location(), delta: text, logprobs } }
          : { type: "response.refusal.delta", members: { ...location(), delta: text } },
      );
      logprobs = [];
      return events;
    },
    logprobs(tokens) {
      addTokens(logprobs, tokens);
    },
    citation(citation) {
      citations.push(citation);
      return [];
    },
    close() {
      if (citations.length === 0) return [];
      const { part, events } = openPart();
      // A citation covers the whole block, whose end is known only now.
      part.counted += countCodePoints(part.uncounted);
      part.uncounted = "";
      const range = { start: part.counted, end: part.counted + countCodePoints(part.block) };
      for (const citation of citations) {
        const annotation = writeAnnotation(citation, range);
        if (annotation === undefined) continue;
        events.push({
          type: "response.output_text.annotation.added",
          members: { ...location(), annotation_index: part.annotations.length, annotation },
        });
        part.annotations.push(annotation);
      }
      citations = [];
      return events;
    },
    done(status) {
      if (!isAdded) return [];
      return [...endPart(), itemDone(output_index, writeMessage(status))];
    },
    value: (status) => isAdded ? writeMessage(status) : undefined,
  };
  return { item, events: open(kind) };
}

/** Writes a part. While it is empty, the lists are new ones: it may get content before its event is written. */
function writePart({ kind, text, annotations, logprobs }: Part): JsonObject {
  return kind === "text"
    ? { type: "output_text", text, annotations: [...annotations], logprobs: logprobs.length > 0 ? logprobs : [] }
    : { type: "refusal", refusal: text };
}

/** Writes a citation; undefined if it has no URL. Positions within the block become positions within its part. */
function writeAnnotation(citation: Citation, block: TextRange): JsonObject | undefined {
  const { from, value } = citation;
  if (from === "responses") {
    const { start_index: start, end_index: end } = value;
    return typeof start !== "number" || typeof end !== "number"
      ? value
      : { ...value, start_index: block.start + start, end_index: block.start + end };
  }
  const cited = urlCitation(citation, block);
  return cited && { type: "url_citation", ...cited };
}
