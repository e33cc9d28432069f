/**
 * Blocks of an answer in the order of their beginning. Chat interleaves parallel calls and never marks the end of a
 * block, so a block ends when another follows.
 */
import { type BlockSequence, BlockSerializer } from "../canonical/block_serializer.ts";
import type { Citation, OpenBlock, ReplyEvent, Signature } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";

/** Most waiting characters. */
const MAX_HELD = 8_388_608;
/** Most blocks of one answer. */
const MAX_BLOCKS = 4_096;

/** A block of the answer. */
export interface QueuedBlock {
  readonly block: OpenBlock;
  /** Receives its text; ended when the block is closed. */
  readonly sequence: BlockSequence;
  /** True if nothing more is expected: the block closes as soon as another follows. */
  done: boolean;
  /** Emitted when the block closes. */
  signature?: Signature;
}

/** The blocks of one answer. */
export class BlockQueue {
  readonly #serializer = new BlockSerializer((event) => this.#events.push(event));
  /** Blocks that are not closed. */
  readonly #queue: QueuedBlock[] = [];
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

  /** Adds a block at the end. @throws {GatewayError} `upstream`, if there are too many */
  add(block: OpenBlock, { done, signature }: { done: boolean; signature?: Signature }): QueuedBlock {
    if (++this.#count > MAX_BLOCKS) {
      throw new GatewayError("upstream", "The model's answer has too many parts", { fault: "oversized" });
    }
    const sequence = this.#serializer.addSequence();
    sequence.open(block);
    const queued: QueuedBlock = { block, sequence, done };
    if (signature !== undefined) queued.signature = signature;
    this.#queue.push(queued);
    this.advance();
    return queued;
  }

  /** Adds text to an open block. @throws {GatewayError} `upstream`, if too much text waits */
  append({ sequence }: QueuedBlock, text: string): void {
    if (text === "") return;
    if (sequence.ended) throw new GatewayError("upstream", "The model's answer has text for a part that has ended");
    sequence.delta(text);
    this.#weigh();
  }

  /**
   * Adds a citation to the last block if it is open text.
   * @throws {GatewayError} `upstream`, if too much text waits
   */
  cite(citation: Citation): void {
    const last = this.tail;
    if (last?.block.type !== "text") return;
    last.sequence.citation(citation);
    this.#weigh();
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

  #close(): void {
    const first = this.#queue.shift();
    first?.sequence.end(first.signature);
  }

  #weigh(): void {
    if (this.#serializer.waiting <= MAX_HELD) return;
    throw new GatewayError("upstream", "The model's answer is too interleaved to be passed on");
  }
}
