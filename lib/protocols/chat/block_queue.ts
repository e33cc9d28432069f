/**
 * Blocks of an answer in the order in which they begin. Chat interleaves parallel calls, and never says that a block is
 * over: one that can be is when another follows.
 */
import { type BlockSequence, BlockSerializer } from "../canonical/block_serializer.ts";
import type { Citation, OpenBlock, ReplyEvent, Signature } from "../canonical/types.ts";
import { GatewayError } from "../../errors.ts";

/** Most that waits at a time, in characters. */
const MAX_HELD = 8_388_608;
/** Most blocks of one answer. */
const MAX_BLOCKS = 4_096;

/** A block of the answer. */
export interface QueuedBlock {
  readonly block: OpenBlock;
  /** Where its text goes. It has ended when the block is closed. */
  readonly lane: BlockSequence;
  /** True when nothing more is expected: the block closes as soon as another one follows. */
  done: boolean;
  /** Goes out when the block closes. */
  signature?: Signature;
}

/** The blocks of one answer. */
export class BlockQueue {
  readonly #lanes = new BlockSerializer((event) => this.#events.push(event));
  /** Those that are not closed. */
  readonly #queue: QueuedBlock[] = [];
  #events: ReplyEvent[] = [];
  #count = 0;

  /** The block that was added last, unless it is closed. */
  get tail(): QueuedBlock | undefined {
    return this.#queue.at(-1);
  }

  /** How many blocks there were so far. */
  get count(): number {
    return this.#count;
  }

  /** Adds a block at the end. @throws {GatewayError} `upstream`, where there are too many */
  add(block: OpenBlock, { done, signature }: { done: boolean; signature?: Signature }): QueuedBlock {
    if (++this.#count > MAX_BLOCKS) {
      throw new GatewayError("upstream", "The model's answer has too many parts", { fault: "oversized" });
    }
    const lane = this.#lanes.addSequence();
    lane.open(block);
    const queued: QueuedBlock = { block, lane, done };
    if (signature !== undefined) queued.signature = signature;
    this.#queue.push(queued);
    this.advance();
    return queued;
  }

  /** Adds text to a block that is not closed. @throws {GatewayError} `upstream`, where too much waits */
  append({ lane }: QueuedBlock, text: string): void {
    if (text === "") return;
    if (lane.ended) throw new GatewayError("upstream", "The model's answer has text for a part that is over");
    lane.delta(text);
    this.#weigh();
  }

  /**
   * Adds a citation to the last block, if that is text. A text that is over cannot be cited any more.
   * @throws {GatewayError} `upstream`, where too much waits
   */
  cite(citation: Citation): void {
    const last = this.tail;
    if (last?.block.type !== "text") return;
    last.lane.citation(citation);
    this.#weigh();
  }

  /** Closes what is done and has followers. */
  advance(): void {
    while (this.#queue.length > 1 && this.#queue[0]?.done === true) this.#close();
  }

  /** Closes all blocks. */
  end(): void {
    while (this.#queue.length > 0) this.#close();
  }

  /** The events since the last time. */
  take(): ReplyEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #close(): void {
    const first = this.#queue.shift();
    first?.lane.end(first.signature);
  }

  #weigh(): void {
    if (this.#lanes.waiting <= MAX_HELD) return;
    throw new GatewayError("upstream", "The model's answer is too interleaved to be passed on");
  }
}
