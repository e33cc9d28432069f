/** Puts interleaved blocks of an answer into an order with one open block at a time, as the canonical form requires. */
import { type BlockEvent, lengthOf } from "./aggregate_events.ts";
import { present } from "../members.ts";
import type { Citation, OpenBlock, ReplyEvent, Signature, TokenLogprob } from "./types.ts";

/** Size of a waiting event in addition to its text, in characters. */
const EVENT_SIZE = 64;

/**
 * Orders the blocks of one answer, which come in several sequences at the same time. Events of the first unfinished
 * sequence are emitted at once; events of the others wait until the sequences before them end.
 */
export class BlockSerializer {
  readonly #emit: (event: ReplyEvent) => void;
  readonly #queue: BlockSequence[] = [];
  /** Index of the next block, or of the open one. */
  #blockIndex = 0;
  #waitingSize = 0;

  /** @param emit receives the events in order: one block after the other, with indices from 0 */
  constructor(emit: (event: ReplyEvent) => void) {
    this.#emit = emit;
  }

  /** Approximate size of the waiting events, in characters. */
  get waitingSize(): number {
    return this.#waitingSize;
  }

  /** Adds a sequence after all others. It may end without events. */
  addSequence(): BlockSequence {
    const sequence = new BlockSequence(this);
    this.#queue.push(sequence);
    return sequence;
  }

  /**
   * Emits an event of the first sequence; keeps that of another, and joins adjacent deltas. An event has the index 0
   * until it is emitted.
   */
  write(sequence: BlockSequence, event: BlockEvent): void {
    if (this.#queue[0] === sequence) return this.#emitEvent(event);
    const size = EVENT_SIZE + lengthOf(event);
    const last = sequence.waiting.at(-1);
    if (event.type === "delta" && last?.type === "delta") last.text += event.text;
    else sequence.waiting.push(event);
    sequence.size += size;
    this.#waitingSize += size;
  }

  /** Removes ended sequences from the front, and emits the waiting events of each sequence that becomes the first. */
  emitWaiting(): void {
    while (this.#queue[0]?.ended === true) {
      this.#queue.shift();
      const head = this.#queue[0];
      if (head === undefined) return;
      for (const event of head.waiting) this.#emitEvent(event);
      head.waiting.length = 0;
      this.#waitingSize -= head.size;
    }
  }

  #emitEvent(event: BlockEvent): void {
    event.index = this.#blockIndex;
    if (event.type === "close") this.#blockIndex++;
    this.#emit(event);
  }
}

/** Blocks of one part of an answer, such as an output item, one after the other. */
export class BlockSequence {
  readonly #serializer: BlockSerializer;
  #isOpen = false;
  #ended = false;
  /** Events that wait for earlier sequences. */
  readonly waiting: BlockEvent[] = [];
  /** Approximate size of `waiting`, in characters. */
  size = 0;

  constructor(serializer: BlockSerializer) {
    this.#serializer = serializer;
  }

  /** True while a block is open. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** True after the last event. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Opens a block; the previous one must be closed. */
  open(block: OpenBlock): void {
    this.#isOpen = true;
    this.#serializer.write(this, { type: "open", index: 0, block });
  }

  /** Adds text to the open block. */
  delta(text: string): void {
    if (text !== "") this.#serializer.write(this, { type: "delta", index: 0, text });
  }

  /** Adds the tokens of the text that follows in the open block. */
  logprobs(tokens: readonly TokenLogprob[]): void {
    if (tokens.length > 0) this.#serializer.write(this, { type: "logprobs", index: 0, tokens });
  }

  /** Adds a citation to the open block. */
  citation(citation: Citation): void {
    this.#serializer.write(this, { type: "citation", index: 0, citation });
  }

  /** Closes the open block, if there is one. */
  close(signature?: Signature): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#serializer.write(this, { type: "close", index: 0, ...present({ signature }) });
  }

  /** Closes the open block, if there is one, and ends the sequence. */
  end(signature?: Signature): void {
    this.close(signature);
    this.#ended = true;
    this.#serializer.emitWaiting();
  }
}
