/**
 * Blocks of an answer in the order of their beginning. Chat interleaves parallel calls and never marks the end of a
 * block, so a block ends when another follows.
 */
import type { Citation, OpenBlock, ReplyEvent, Signature } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";

/** Most waiting characters. */
const MAX_HELD = 8_388_608;
/** Most blocks of one answer. */
const MAX_BLOCKS = 4_096;
/** Size of a waiting event besides its text. */
const EVENT_SIZE = 64;

/** A block of the answer. */
export interface QueuedBlock {
  readonly block: OpenBlock;
  /** True if nothing more is expected: the block closes as soon as another follows. */
  done: boolean;
  /** True once the block is closed. */
  ended: boolean;
  /** Emitted when the block closes. */
  signature?: Signature;
  /** Text and citations that wait for the blocks before this one, and their size. */
  text: string;
  citations: Citation[];
  held: number;
}

/** The blocks of one answer. Events of the first open block go out at once; what belongs to the others waits. */
export class BlockQueue {
  /** Blocks that are not closed. */
  readonly #queue: QueuedBlock[] = [];
  #events: ReplyEvent[] = [];
  #count = 0;
  #held = 0;

  /** The last block, unless it is closed. */
  get tail(): QueuedBlock | undefined {
    return this.#queue.at(-1);
  }

  /** Number of blocks so far. */
  get count(): number {
    return this.#count;
  }

  /** Index of the first open block. */
  get #index(): number {
    return this.#count - this.#queue.length;
  }

  /** Adds a block at the end. @throws {GatewayError} `upstream`, if there are too many, or too much waits */
  add(block: OpenBlock, { done, signature }: { done: boolean; signature?: Signature }): QueuedBlock {
    if (++this.#count > MAX_BLOCKS) {
      throw new GatewayError("upstream", "The model's answer has too many parts", { fault: "oversized" });
    }
    const queued: QueuedBlock = { block, done, ended: false, text: "", citations: [], held: 0 };
    if (signature !== undefined) queued.signature = signature;
    this.#queue.push(queued);
    if (this.#queue.length === 1) this.#begin(queued);
    else this.#hold(queued, JSON.stringify(block).length);
    this.advance();
    return queued;
  }

  /** Adds text to an open block. @throws {GatewayError} `upstream`, if too much text waits */
  append(queued: QueuedBlock, text: string): void {
    if (text === "") return;
    if (queued.ended) throw new GatewayError("upstream", "The model's answer has text for a part that has ended");
    if (queued === this.#queue[0]) {
      this.#events.push({ type: "delta", index: this.#index, text });
      return;
    }
    queued.text += text;
    this.#hold(queued, text.length);
  }

  /**
   * Adds a citation to the last block if it is open text.
   * @throws {GatewayError} `upstream`, if too much text waits
   */
  cite(citation: Citation): void {
    const last = this.tail;
    if (last?.block.type !== "text") return;
    if (last === this.#queue[0]) {
      this.#events.push({ type: "citation", index: this.#index, citation });
      return;
    }
    last.citations.push(citation);
    this.#hold(last, JSON.stringify(citation).length);
  }

  /** Closes finished blocks that have followers. */
  advance(): void {
    while (this.#queue.length > 1 && this.#queue[0]?.done === true) this.#close();
  }

  end(): void {
    while (this.#queue.length > 0) this.#close();
  }

  /** Returns the events since the last call. */
  take(): ReplyEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** Opens the first block, and emits what waited in it. */
  #begin(first: QueuedBlock): void {
    const index = this.#index;
    this.#events.push({ type: "open", index, block: first.block });
    if (first.text !== "") this.#events.push({ type: "delta", index, text: first.text });
    for (const citation of first.citations) this.#events.push({ type: "citation", index, citation });
    this.#held -= first.held;
  }

  #close(): void {
    const [first, next] = this.#queue;
    if (first === undefined) return;
    const { signature } = first;
    this.#events.push({ type: "close", index: this.#index, ...(signature !== undefined && { signature }) });
    first.ended = true;
    this.#queue.shift();
    if (next !== undefined) this.#begin(next);
  }

  #hold(queued: QueuedBlock, size: number): void {
    queued.held += size + EVENT_SIZE;
    this.#held += size + EVENT_SIZE;
    if (this.#held <= MAX_HELD) return;
    throw new GatewayError("upstream", "The model's answer is too interleaved to be passed on");
  }
}
