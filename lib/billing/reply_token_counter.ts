/**
 * Counts the tokens of an answer while it streams, for upstreams that report none and clients that disconnect. The
 * result equals `countReply` of the whole answer, in memory that does not grow with the answer.
 *
 * The beginning of a long text is counted and dropped at a boundary between o200k_base pieces, where the sum of the
 * parts is exact. A text without such a boundary within 32,768 characters (one run of spaces, symbols or letters) is
 * cut at the end of a token that the next 1,000 characters do not change: exact for such runs; a text crafted for it
 * could gain or lose a token or two per cut.
 */
import type { ContentBlock, OpenBlock, ReplyEvent } from "../protocols/canonical/types.ts";
import { countReply, type ReplyTokens } from "./count_prompt.ts";
import { yieldToEventLoop } from "../scheduler.ts";
import { COUNTED_AT_ONCE, lastCut, loadTokenCounter, type TokenCounter } from "../o200k/mod.ts";

/** Most uncounted text, in UTF-16 code units: 64 KiB. */
const KEPT = 32_768;
/** Uncounted text above which `push` returns a promise to wait for, in UTF-16 code units. */
const BEHIND = 524_288;
/** Overhead of a stored text, in UTF-16 code units. */
const PART = 64;
/** Text that is kept after a cut within a piece, in UTF-16 code units. */
const OVERLAP = 1024;
/** Deltas that are joined into one string, since many small strings take more memory. */
const DELTAS = 256;

/** A text that is counted separately: that of a block, or the name of a tool. */
interface Part {
  type: "text" | "reasoning";
  /** Pieces of the text that were not counted yet. */
  deltas: string[];
  /** Size with the overhead. */
  size: number;
}

/** The running count of one answer. Counts only on request, or when more than 64 KiB are kept. */
export class ReplyTokenCounter {
  /** Complete texts. */
  #complete: Part[] = [];
  /** The text of the open block. */
  #open: { part: Part; block: OpenBlock; empty: boolean } | undefined;
  #size = 0;
  #counted: ReplyTokens = { completion: 0, reasoning: 0 };
  #work: Promise<void> | undefined;
  #stopped = false;

  /**
   * Adds the next event of the answer.
   * @returns a promise if much text is uncounted; waiting for it bounds the memory
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
    if (this.#size <= KEPT) return undefined;
    // An error here repeats in `finish`, which reports it.
    this.#work ??= this.#reduce().catch(() => {}).finally(() => this.#work = undefined);
    return this.#size > BEHIND ? this.#work : undefined;
  }

  /** Returns the tokens of all events so far. More events may follow. */
  async finish(): Promise<ReplyTokens> {
    const counter = await loadTokenCounter();
    while (this.#work !== undefined) await this.#work;
    const parts = this.#open === undefined ? this.#complete : [...this.#complete, this.#open.part];
    return sum(this.#counted, await countReply(parts.map(blockOf), counter));
  }

  /**
   * Discards all texts: no count is needed.
   * @returns a promise if a count is in progress, which ends soon
   */
  stop(): Promise<void> | undefined {
    this.#stopped = true;
    this.#complete = [];
    this.#open = undefined;
    return this.#work;
  }

  #begin(block: OpenBlock): void {
    if (block.type === "tool_call") {
      this.#keep(block.name);
      if (block.namespace !== undefined) this.#keep(block.namespace);
    }
    // Vendor-specific blocks are complete when they open.
    if (block.type === "vendor_specific") this.#keep(JSON.stringify(block.value));
    else {
      const type = block.type === "reasoning" ? "reasoning" : "text";
      this.#open = { part: { type, deltas: [], size: PART }, block, empty: true };
      this.#size += PART;
    }
  }

  #append(text: string): void {
    if (this.#open === undefined) return;
    const { part } = this.#open;
    this.#open.empty = false;
    part.deltas.push(text);
    if (part.deltas.length === DELTAS) part.deltas = [part.deltas.join("")];
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

  #keep(text: string): void {
    this.#complete.push({ type: "text", deltas: [text], size: PART + text.length });
    this.#size += PART + text.length;
  }

  /** Counts the complete texts, and the beginning of the open text if it is long. */
  async #reduce(): Promise<void> {
    const counter = await loadTokenCounter();
    while (this.#size > KEPT && !this.#stopped) {
      const complete = this.#complete.splice(0);
      // The open part may have been closed during an await, and is then among the complete ones.
      const part = complete.length === 0 ? this.#open?.part : undefined;
      const done = part === undefined ? complete : [cutBeginning(part, counter)];
      for (const { size } of done) this.#size -= size;
      this.#counted = sum(this.#counted, await countReply(done.map(blockOf), counter));
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

/** Counts and drops the beginning of a text that exceeds the bound. */
function cutBeginning(part: Part, counter: TokenCounter): Part {
  const text = part.deltas.join("");
  const cut = lastCut(text, KEPT - PART) || cutWithin(text, counter);
  part.deltas = [text.slice(cut)];
  part.size -= cut;
  return { type: part.type, deltas: [text.slice(0, cut)], size: cut };
}

/** The last token boundary near the beginning of a text, at least `OVERLAP` before the end of the inspected range. */
function cutWithin(text: string, counter: TokenCounter): number {
  let cut = 0;
  for (const piece of counter.split(text.slice(0, COUNTED_AT_ONCE))) {
    if (cut > 0 && cut + piece.length > COUNTED_AT_ONCE - OVERLAP) break;
    cut += piece.length;
  }
  return cut;
}
