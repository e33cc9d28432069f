/**
 * Counts the tokens of an answer while it passes, for answers whose upstream tells none, or whose client leaves. It is the
 * count that `countReply` makes of the whole, in memory that does not grow with the answer.
 *
 * The beginning of a long text is counted and dropped where the pieces of o200k_base end whatever follows, so that the
 * parts have the tokens of the whole, exactly. A text that has no such place within 32,768 characters (one run of spaces,
 * of symbols, of letters without anything between them) is cut where a token ends that over 1,000 characters after it do
 * not change. That is exact for such runs; a text made for it could gain or lose a token or two at such a cut.
 */
import type { ContentBlock, OpenBlock, ReplyEvent } from "../protocols/canonical/types.ts";
import { countReply, type ReplyTokens } from "./count_prompt.ts";
import { yieldToEventLoop } from "../scheduler.ts";
import { COUNTED_AT_ONCE, lastCut, loadTokenCounter, type TokenCounter } from "../o200k/mod.ts";

/** Text kept uncounted, in UTF-16 code units: 64 KiB. */
const KEPT = 32_768;
/** Uncounted text beyond which `push` asks its caller to wait, in UTF-16 code units. */
const BEHIND = 524_288;
/** Overhead of a kept text, in UTF-16 code units. */
const PART = 64;
/** Text after a cut within a piece, in UTF-16 code units. */
const OVERLAP = 1024;
/** Deltas that are joined together, as many small strings are larger than one. */
const DELTAS = 256;

/** A text that is counted by itself: a block's, or the name of a tool. */
interface Part {
  type: "text" | "reasoning";
  /** Joined they are the text, less what was counted and dropped. */
  deltas: string[];
  /** Its size with the overhead. */
  size: number;
}

/** The running count of one answer. Nothing is counted before it is asked for, unless more than 64 KiB are kept. */
export class ReplyTokenCounter {
  /** Texts that are whole. */
  #whole: Part[] = [];
  /** The text of the open block. */
  #open: { part: Part; block: OpenBlock; empty: boolean } | undefined;
  #size = 0;
  #counted: ReplyTokens = { completion: 0, reasoning: 0 };
  #work: Promise<void> | undefined;
  #stopped = false;

  /**
   * Takes the next event of the answer.
   * @returns a promise where much waits to be counted: whoever can wait for it bounds the memory
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
    // What fails here fails again at the end, where somebody waits for it.
    this.#work ??= this.#reduce().catch(() => {}).finally(() => this.#work = undefined);
    return this.#size > BEHIND ? this.#work : undefined;
  }

  /** The tokens of all that was pushed so far. More may follow, and be asked for again. */
  async finish(): Promise<ReplyTokens> {
    const counter = await loadTokenCounter();
    while (this.#work !== undefined) await this.#work;
    const parts = this.#open === undefined ? this.#whole : [...this.#whole, this.#open.part];
    return sum(this.#counted, await countReply(parts.map(blockOf), counter));
  }

  /**
   * Nobody will ask for it: what is still uncounted stays so, and what comes is not kept.
   * @returns a promise where some is being counted at this moment: it is done before long
   */
  stop(): Promise<void> | undefined {
    this.#stopped = true;
    this.#whole = [];
    this.#open = undefined;
    return this.#work;
  }

  #begin(block: OpenBlock): void {
    if (block.type === "tool_call") {
      this.#keep(block.name);
      if (block.namespace !== undefined) this.#keep(block.namespace);
    }
    // Blocks that only one vendor knows are whole when they open.
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
    // A call without arguments is one with an empty object.
    if (empty && block.type === "tool_call" && block.custom !== true) this.#append("{}");
    this.#open = undefined;
    this.#whole.push(part);
  }

  #keep(text: string): void {
    this.#whole.push({ type: "text", deltas: [text], size: PART + text.length });
    this.#size += PART + text.length;
  }

  /** Counts what is whole, and of the open text so much that little is kept. */
  async #reduce(): Promise<void> {
    const counter = await loadTokenCounter();
    while (this.#size > KEPT && !this.#stopped) {
      const whole = this.#whole.splice(0);
      // Between two turns of the loop a part may have been closed: then it is among the whole ones.
      const part = whole.length === 0 ? this.#open?.part : undefined;
      const done = part === undefined ? whole : [cutBeginning(part, counter)];
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

/** Takes the beginning off a text that is longer than what may be kept. */
function cutBeginning(part: Part, counter: TokenCounter): Part {
  const text = part.deltas.join("");
  const cut = lastCut(text, KEPT - PART) || cutWithin(text, counter);
  part.deltas = [text.slice(cut)];
  part.size -= cut;
  return { type: part.type, deltas: [text.slice(0, cut)], size: cut };
}

/** The last place near the beginning of a text at which a token ends, `OVERLAP` before the end of what was looked at. */
function cutWithin(text: string, counter: TokenCounter): number {
  let cut = 0;
  for (const piece of counter.split(text.slice(0, COUNTED_AT_ONCE))) {
    if (cut > 0 && cut + piece.length > COUNTED_AT_ONCE - OVERLAP) break;
    cut += piece.length;
  }
  return cut;
}
