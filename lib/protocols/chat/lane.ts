/**
 * Blocks of an answer as they come, put into one lane: chat interleaves parallel calls, the canonical form has one block
 * open at a time. The first block streams; what comes for later ones waits until it is their turn.
 */
import type { Citation, Event, OpenBlock, Signature } from "../../canonical/types.ts";
import { GatewayError } from "../../errors.ts";

/** Most that waits at a time, in characters. */
const MAX_HELD = 8_388_608;
/** What a piece costs beside its characters. */
const PIECE = 64;
/** Most blocks of one answer. */
const MAX_BLOCKS = 4_096;

/** A block of the answer. */
export interface LaneBlock {
  readonly block: OpenBlock;
  /** True when nothing more is expected: the block closes as soon as another one follows. */
  done: boolean;
  /** Goes out when the block closes. */
  signature?: Signature;
  readonly closed: boolean;
}

interface Entry extends LaneBlock {
  closed: boolean;
  held: string[];
  citations: Citation[];
}

/** The lane of one answer. */
export class Lane {
  readonly #queue: Entry[] = [];
  #events: Event[] = [];
  #open = false;
  #index = 0;
  #held = 0;
  #count = 0;

  /** The block that was added last, unless it is closed. */
  get tail(): LaneBlock | undefined {
    return this.#queue.at(-1);
  }

  /** How many blocks there were so far. */
  get count(): number {
    return this.#count;
  }

  /** Adds a block at the end. @throws {GatewayError} `upstream`, where there are too many */
  add(block: OpenBlock, { done, signature }: { done: boolean; signature?: Signature }): LaneBlock {
    if (++this.#count > MAX_BLOCKS) throw new GatewayError("upstream", "The model's answer has too many parts");
    const entry: Entry = { block, done, closed: false, held: [], citations: [] };
    if (signature !== undefined) entry.signature = signature;
    this.#queue.push(entry);
    this.advance();
    return entry;
  }

  /** Adds text to a block that is not closed. @throws {GatewayError} `upstream`, where too much waits */
  append(block: LaneBlock, text: string): void {
    if (text === "") return;
    const entry = this.#queue.find((entry) => entry === block);
    if (entry === undefined) throw new GatewayError("upstream", "The model's answer has text for a part that is over");
    if (entry === this.#queue[0]) {
      this.#events.push({ type: "delta", index: this.#index, text });
      return;
    }
    this.#held += text.length + PIECE;
    if (this.#held > MAX_HELD) {
      throw new GatewayError("upstream", "The model's answer is too interleaved to be passed on");
    }
    entry.held.push(text);
  }

  /** Adds a citation to the last block, if that is text. A text that is over cannot be cited any more. */
  cite(citation: Citation): void {
    const entry = this.#queue.at(-1);
    if (entry?.block.type !== "text") return;
    if (entry === this.#queue[0]) this.#events.push({ type: "citation", index: this.#index, citation });
    else entry.citations.push(citation);
  }

  /** Closes what is done and has followers, opens what is next. */
  advance(): void {
    for (let head = this.#queue[0]; head !== undefined; head = this.#queue[0]) {
      if (!this.#open) this.#start(head);
      if (!head.done || this.#queue.length === 1) return;
      this.#close(head);
    }
  }

  /** Closes all blocks. */
  end(): void {
    for (const entry of this.#queue) entry.done = true;
    this.advance();
    const [last] = this.#queue;
    if (last !== undefined) this.#close(last);
  }

  /** The events since the last time. */
  take(): Event[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #start(entry: Entry): void {
    const index = this.#index;
    this.#open = true;
    this.#events.push({ type: "open", index, block: entry.block });
    const text = entry.held.join("");
    this.#held -= text.length + PIECE * entry.held.length;
    entry.held = [];
    if (text !== "") this.#events.push({ type: "delta", index, text });
    for (const citation of entry.citations) this.#events.push({ type: "citation", index, citation });
  }

  #close(entry: Entry): void {
    const { signature } = entry;
    this.#events.push({ type: "close", index: this.#index, ...(signature !== undefined && { signature }) });
    entry.closed = true;
    this.#queue.shift();
    this.#index++;
    this.#open = false;
  }
}
