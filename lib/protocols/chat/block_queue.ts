/**
 * Puts the interleaved blocks of a chat answer into the order in which they began. Chat interleaves parallel calls and
 * does not mark the end of a block, so a block ends when another follows.
 */
import { type BlockSequence, BlockSerializer } from "../canonical/block_serializer.ts";
import type { OpenBlock, ReplyEvent, Signature } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";

/** Limit of all waiting events, in characters. */
const MAX_WAITING = 8_388_608;
/** Limit of blocks in one answer. */
const MAX_BLOCKS = 4_096;

/** A block of the answer. */
export interface QueuedBlock {
  readonly type: OpenBlock["type"];
  readonly sequence: BlockSequence;
  /** True if the block needs no more text, and so closes as soon as another follows. */
  done: boolean;
  /** The signature, which is emitted when the block closes. */
  signature: Signature | undefined;
}

/** Orders the blocks of one answer. Events of the first open block are emitted at once; those of the others wait. */
export class BlockQueue {
  /** Blocks that are not closed, oldest first. */
  readonly #queue: QueuedBlock[] = [];
  readonly #serializer = new BlockSerializer((event) => this.#events.push(event));
  #events: ReplyEvent[] = [];
  #count = 0;

  /** The last block, unless it is closed. */
  get tail(): QueuedBlock | undefined {
    return this.#queue.at(-1);
  }

  /** Number of blocks so far. */
  get count(): number {
    return this.#count;
  }

  /** Adds a block at the end. @throws {GatewayError} `upstream`, if there are too many blocks */
  add(block: OpenBlock, { done, signature }: { done: boolean; signature?: Signature }): QueuedBlock {
    if (++this.#count > MAX_BLOCKS) {
      throw new GatewayError("upstream", "The model's answer has too many parts", { fault: "oversized" });
    }
    // A signed block is complete. Its signature now counts as waiting.
    const { tail } = this;
    if (tail?.signature !== undefined) tail.sequence.end(tail.signature);
    const queued = { type: block.type, sequence: this.#serializer.addSequence(), done, signature };
    this.#queue.push(queued);
    queued.sequence.open(block);
    this.advance();
    return queued;
  }

  /** Adds text to a block. @throws {GatewayError} `upstream`, if the block has ended */
  append({ sequence }: QueuedBlock, text: string): void {
    if (text !== "" && sequence.ended) {
      throw new GatewayError("upstream", "The model's answer adds text to a part that has already ended");
    }
    sequence.delta(text);
  }

  /** Closes the blocks at the front that are done, except the last block. */
  advance(): void {
    while (this.#queue.length > 1 && this.#queue[0]?.done === true) this.#closeFirst();
  }

  end(): void {
    while (this.#queue.length > 0) this.#closeFirst();
  }

  /** Returns the events since the last call. */
  take(): ReplyEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** @throws {GatewayError} `upstream`, if too much waits */
  checkWaiting(): void {
    if (this.#serializer.waitingSize <= MAX_WAITING) return;
    throw new GatewayError("upstream", "The model's answer has too many interleaved parts");
  }

  #closeFirst(): void {
    const first = this.#queue.shift();
    first?.sequence.end(first.signature);
  }
}
