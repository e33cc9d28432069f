/**
 * Counts the tokens of an answer while it streams, for upstreams that report none and clients that disconnect. The
 * result equals that of `countReply` for the whole answer, but the memory does not grow with the answer.
 *
 * A long text is cut, and the part before the cut is counted and dropped. The cut is between two pieces of o200k_base,
 * where the sum of the parts is exact. A text without such a boundary within 32,768 characters (one run of spaces,
 * symbols or letters) is cut at the end of a token that is at least 1,000 characters before the end of the inspected
 * text. This is exact for such runs; a text crafted against it could gain or lose a token or two per cut.
 */
import type { ContentBlock, OpenBlock, ReplyEvent } from "../protocols/canonical/types.ts";
import { countReply, type ReplyTokens } from "./count_prompt.ts";
import { yieldToEventLoop } from "../scheduler.ts";
import { COUNTED_AT_ONCE, lastCut, loadTokenCounter, type TokenCounter } from "../o200k/mod.ts";

/** Uncounted text above which counting begins, in UTF-16 code units: 64 KiB. */
const MAX_UNCOUNTED = 32_768;
/** Uncounted text above which `push` returns a promise to wait for, in UTF-16 code units. */
const PAUSE_ABOVE = 524_288;
/** Memory overhead of a stored text, in UTF-16 code units. */
const PART_OVERHEAD = 64;
/** Minimum distance of a cut within a piece from the end of the inspected text, in UTF-16 code units. */
const CUT_MARGIN = 1024;
/** Number of deltas that are joined into one string, since many small strings take more memory. */
const JOINED_DELTAS = 256;

/** A text that is counted separately: that of a block, or the name of a tool. */
interface Part {
  type: "text" | "reasoning";
  /** The text as far as it was not counted yet. */
  deltas: string[];
  /** Length of the text with the overhead, in UTF-16 code units. */
  size: number;
}

/** The running count of one answer. Text is counted in `finish`, or once more than 64 KiB are uncounted. */
export class ReplyTokenCounter {
  /** Complete texts that were not counted yet. */
  #complete: Part[] = [];
  /** The open block and its text; undefined between blocks. */
  #open: { part: Part; block: OpenBlock; empty: boolean } | undefined;
  /** Sum of the sizes of all uncounted texts. */
  #size = 0;
  #counted: ReplyTokens = { completion: 0, reasoning: 0 };
  #counting: Promise<void> | undefined;
  #stopped = false;

  /**
   * Adds the next event of the answer.
   * @returns a promise if much text is uncounted: a caller that waits for it bounds the memory
   */
  push(event: ReplyEvent): Promise<void> | undefined {
    if (this.#stopped) return undefined;
    switch (event.type) {
      case "open":
        this.#begin(event.block);
        break;
      case "delta":
        this.#append(event.text);
        break;
      case "close":
        this.#close();
    }
    if (this.#size <= MAX_UNCOUNTED) return undefined;
    // An error here repeats in `finish`, which reports it.
    this.#counting ??= this.#reduce().catch(() => {}).finally(() => this.#counting = undefined);
    return this.#size > PAUSE_ABOVE ? this.#counting : undefined;
  }

  /** Returns the tokens of all events so far. More events may follow. */
  async finish(): Promise<ReplyTokens> {
    const counter = await loadTokenCounter();
    while (this.#counting !== undefined) await this.#counting;
    const parts = this.#open === undefined ? this.#complete : [...this.#complete, this.#open.part];
    return sum(this.#counted, await countReply(parts.map(blockOf), counter));
  }

  /**
   * Discards all texts, because no count is needed.
   * @returns a promise that resolves when a count in progress has ended; undefined if there is none
   */
  stop(): Promise<void> | undefined {
    this.#stopped = true;
    this.#complete = [];
    this.#open = undefined;
    return this.#counting;
  }

  #begin(block: OpenBlock): void {
    if (block.type === "tool_call") {
      this.#addComplete(block.name);
      if (block.namespace !== undefined) this.#addComplete(block.namespace);
    }
    // Vendor-specific blocks are complete when they open.
    if (block.type === "vendor_specific") this.#addComplete(JSON.stringify(block.value));
    else {
      const type = block.type === "reasoning" ? "reasoning" : "text";
      this.#open = { part: { type, deltas: [], size: PART_OVERHEAD }, block, empty: true };
      this.#size += PART_OVERHEAD;
    }
  }

  #append(text: string): void {
    if (this.#open === undefined) return;
    const { part } = this.#open;
    this.#open.empty = false;
    part.deltas.push(text);
    if (part.deltas.length === JOINED_DELTAS) part.deltas = [part.deltas.join("")];
    part.size += text.length;
    this.#size += text.length;
  }

  #close(): void {
    if (this.#open === undefined) return;
    const { part, block, empty } = this.#open;
    // A call without arguments counts as an empty object.
    if (empty && block.type === "tool_call" && block.custom !== true) this.#append("{}");
    this.#open = undefined;
    this.#complete.push(part);
  }

  #addComplete(text: string): void {
    this.#complete.push({ type: "text", deltas: [text], size: PART_OVERHEAD + text.length });
    this.#size += PART_OVERHEAD + text.length;
  }

  /** Counts the complete texts, and the beginning of the open text if it is long. */
  async #reduce(): Promise<void> {
    const counter = await loadTokenCounter();
    while (this.#size > MAX_UNCOUNTED && !this.#stopped) {
      const complete = this.#complete.splice(0);
      // The open part may have been closed during an await, and is then among the complete ones.
      const part = complete.length === 0 ? this.#open?.part : undefined;
      const counted = part === undefined ? complete : [cutBeginning(part, counter)];
      for (const { size } of counted) this.#size -= size;
      this.#counted = sum(this.#counted, await countReply(counted.map(blockOf), counter));
      await yieldToEventLoop();
    }
  }
}

function blockOf({ type, deltas }: Part): ContentBlock {
  return { type, text: deltas.join("") };
}

function sum(a: ReplyTokens, b: ReplyTokens): ReplyTokens {
  return { completion: a.completion + b.completion, reasoning: a.reasoning + b.reasoning };
}

/** Removes the beginning of a text that exceeds the bound, and returns it as a part to be counted. */
function cutBeginning(part: Part, counter: TokenCounter): Part {
  const text = part.deltas.join("");
  const cut = lastCut(text, MAX_UNCOUNTED - PART_OVERHEAD) || cutWithin(text, counter);
  part.deltas = [text.slice(cut)];
  part.size -= cut;
  return { type: part.type, deltas: [text.slice(0, cut)], size: cut };
}

/**
 * Returns the last token boundary that is at least `CUT_MARGIN` before the end of the inspected beginning of a text.
 */
function cutWithin(text: string, counter: TokenCounter): number {
  let cut = 0;
  for (const piece of counter.split(text.slice(0, COUNTED_AT_ONCE))) {
    if (cut > 0 && cut + piece.length > COUNTED_AT_ONCE - CUT_MARGIN) break;
    cut += piece.length;
  }
  return cut;
}
