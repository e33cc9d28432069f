/** Turns interleaved blocks into one open block at a time, as the canonical form requires. */
import type { Citation, OpenBlock, ReplyEvent, Signature } from "./types.ts";

/** Size of a waiting event besides its text. */
const EVENT_SIZE = 64;

/** An event of a block; the serializer sets its index. */
type BlockEvent = Extract<ReplyEvent, { index: number }>;

/**
 * Blocks of one answer, in sequences. Events of the first unfinished sequence go out at once; events of the others
 * wait.
 */
export class BlockSerializer {
  readonly #emit: (event: ReplyEvent) => void;
  readonly #queue: BlockSequence[] = [];
  /** Index of the next block, or of the open one. */
  #next = 0;
  #waiting = 0;

  /** @param emit receives the events in legal order */
  constructor(emit: (event: ReplyEvent) => void) {
    this.#emit = emit;
  }

  /** Approximate size of the waiting events, in characters. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Adds a sequence after all others. A sequence that ends without events leaves no trace. */
  addSequence(): BlockSequence {
    const sequence = new BlockSequence(this);
    this.#queue.push(sequence);
    return sequence;
  }

  /** Takes an event of a sequence. Adjacent waiting deltas are joined. */
  write(sequence: BlockSequence, event: BlockEvent): void {
    if (this.#queue[0] === sequence) return this.#pass(event);
    const size = EVENT_SIZE + lengthOf(event);
    const last = sequence.waiting.at(-1);
    if (event.type === "delta" && last?.type === "delta") last.text += event.text;
    else sequence.waiting.push(event);
    sequence.size += size;
    this.#waiting += size;
  }

  /** Removes finished sequences from the front and emits what waits in the next one. */
  passWaiting(): void {
    while (this.#queue[0]?.ended === true) {
      this.#queue.shift();
      const head = this.#queue[0];
      if (head === undefined) return;
      for (const event of head.waiting) this.#pass(event);
      head.waiting.length = 0;
      this.#waiting -= head.size;
    }
  }

  #pass(event: BlockEvent): void {
    event.index = this.#next;
    if (event.type === "close") this.#next++;
    this.#emit(event);
  }
}

/** Blocks of one part of an answer, one after the other. */
export class BlockSequence {
  readonly #serializer: BlockSerializer;
  #opened = false;
  #ended = false;
  /** Events that wait for earlier sequences. */
  readonly waiting: BlockEvent[] = [];
  size = 0;

  constructor(serializer: BlockSerializer) {
    this.#serializer = serializer;
  }

  /** True while a block is open. */
  get opened(): boolean {
    return this.#opened;
  }

  /** True after the last event. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Opens a block; the previous one must be closed. */
  open(block: OpenBlock): void {
    this.#opened = true;
    this.#serializer.write(this, { type: "open", index: 0, block });
  }

  /** Adds text to the open block. */
  delta(text: string): void {
    if (text !== "") this.#serializer.write(this, { type: "delta", index: 0, text });
  }

  citation(citation: Citation): void {
    this.#serializer.write(this, { type: "citation", index: 0, citation });
  }

  /** Closes the open block, if there is one. */
  close(signature?: Signature): void {
    if (!this.#opened) return;
    this.#opened = false;
    this.#serializer.write(
      this,
      signature === undefined ? { type: "close", index: 0 } : { type: "close", index: 0, signature },
    );
  }

  /** Closes the open block, if there is one, and ends the sequence. */
  end(signature?: Signature): void {
    this.close(signature);
    this.#ended = true;
    this.#serializer.passWaiting();
  }
}

function lengthOf(event: BlockEvent): number {
  switch (event.type) {
    case "open":
      return JSON.stringify(event.block).length;
    case "delta":
      return event.text.length;
    case "citation":
      return JSON.stringify(event.citation).length;
    case "close":
      return event.signature?.value.length ?? 0;
  }
}
