/**
 * Puts the interleaved blocks of a chat answer into the order in which they began. Chat interleaves parallel calls and
 * does not mark the end of a block, so a block ends when another follows.
 */
import type { Citation, OpenBlock, ReplyEvent, Signature, TokenLogprob } from "../canonical/types.ts";
import { addTokens } from "../canonical/logprobs.ts";
import { GatewayError } from "../../errors.ts";

/** Limit of all waiting events, in characters. */
const MAX_WAITING = 8_388_608;
/** Limit of blocks in one answer. */
const MAX_BLOCKS = 4_096;
/** Size of a waiting event in addition to its text, in characters. */
const EVENT_SIZE = 64;

/** A block of the answer. */
export interface QueuedBlock {
  readonly block: OpenBlock;
  /** True if the block needs no more text, and so closes as soon as another follows. */
  done: boolean;
  /** True once the block is closed. */
  ended: boolean;
  /** The signature, which is emitted when the block closes. */
  signature?: Signature;
  /** Text that waits for the blocks before this one. */
  text: string;
  /** Citations that wait for the blocks before this one. */
  citations: Citation[];
  /** Tokens of `text`. */
  logprobs: TokenLogprob[];
  /** Size of what waits, in characters. */
  waitingSize: number;
}

/** Orders the blocks of one answer. Events of the first open block are emitted at once; those of the others wait. */
export class BlockQueue {
  /** Blocks that are not closed, oldest first. */
  readonly #queue: QueuedBlock[] = [];
  #events: ReplyEvent[] = [];
  #count = 0;
  #waitingSize = 0;

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

  /** Adds a block at the end. @throws {GatewayError} `upstream`, if there are too many blocks, or too much waits */
  add(block: OpenBlock, { done, signature }: { done: boolean; signature?: Signature }): QueuedBlock {
    if (++this.#count > MAX_BLOCKS) {
      throw new GatewayError("upstream", "The model's answer has too many parts", { fault: "oversized" });
    }
    const queued: QueuedBlock = { block, done, ended: false, text: "", citations: [], logprobs: [], waitingSize: 0 };
    if (signature !== undefined) queued.signature = signature;
    this.#queue.push(queued);
    if (this.#queue.length === 1) this.#begin(queued);
    else this.#countWaiting(queued, JSON.stringify(block).length);
    this.advance();
    return queued;
  }

  /** Adds text to an open block. @throws {GatewayError} `upstream`, if too much text waits */
  append(queued: QueuedBlock, text: string): void {
    if (text === "") return;
    if (queued.ended) {
      throw new GatewayError("upstream", "The model's answer adds text to a part that has already ended");
    }
    if (queued === this.#queue[0]) {
      this.#events.push({ type: "delta", index: this.#index, text });
      return;
    }
    queued.text += text;
    this.#countWaiting(queued, text.length);
  }

  /**
   * Adds the tokens of the text that is appended next.
   * @throws {GatewayError} `upstream`, if too much waits
   */
  addLogprobs(queued: QueuedBlock, tokens: readonly TokenLogprob[]): void {
    if (tokens.length === 0) return;
    if (queued === this.#queue[0]) {
      this.#events.push({ type: "logprobs", index: this.#index, tokens });
      return;
    }
    addTokens(queued.logprobs, tokens);
    this.#countWaiting(queued, JSON.stringify(tokens).length);
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
    this.#countWaiting(last, JSON.stringify(citation).length);
  }

  /** Closes the blocks at the front that are done, except the last block. */
  advance(): void {
    while (this.#queue.length > 1 && this.#queue[0]?.done === true) this.#close();
  }

  /** Closes all blocks. */
  end(): void {
    while (this.#queue.length > 0) this.#close();
  }

  /** Returns the events since the last call. */
  take(): ReplyEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** Emits the start of the first block, and what waited in it. */
  #begin(first: QueuedBlock): void {
    const index = this.#index;
    this.#events.push({ type: "open", index, block: first.block });
    if (first.logprobs.length > 0) this.#events.push({ type: "logprobs", index, tokens: first.logprobs });
    if (first.text !== "") this.#events.push({ type: "delta", index, text: first.text });
    for (const citation of first.citations) this.#events.push({ type: "citation", index, citation });
    this.#waitingSize -= first.waitingSize;
  }

  /** Closes the first block, and begins the next one. */
  #close(): void {
    const [first, next] = this.#queue;
    if (first === undefined) return;
    const { signature } = first;
    this.#events.push({ type: "close", index: this.#index, ...(signature !== undefined && { signature }) });
    first.ended = true;
    this.#queue.shift();
    if (next !== undefined) this.#begin(next);
  }

  /** Adds to the size of what waits. @throws {GatewayError} `upstream`, if that is too much */
  #countWaiting(queued: QueuedBlock, size: number): void {
    queued.waitingSize += size + EVENT_SIZE;
    this.#waitingSize += size + EVENT_SIZE;
    if (this.#waitingSize <= MAX_WAITING) return;
    throw new GatewayError("upstream", "The model's answer has too many interleaved parts");
  }
}
