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

  /** Adds a sequence behind all others. One that ends without events leaves no trace. */
  addSequence(): BlockSequence {
    const lane = new BlockSequence(this);
    this.#queue.push(lane);
    return lane;
  }

  /** Takes an event of a sequence. Adjacent waiting deltas are joined. */
  write(lane: BlockSequence, said: BlockEvent): void {
    if (this.#queue[0] === lane) return this.#pass(said);
    const size = EVENT_SIZE + lengthOf(said);
    const last = lane.waiting.at(-1);
    if (said.type === "delta" && last?.type === "delta") last.text += said.text;
    else lane.waiting.push(said);
    lane.size += size;
    this.#waiting += size;
  }

  /** Removes finished sequences from the front and emits what waits in the next one. */
  passWaiting(): void {
    while (this.#queue[0]?.ended === true) {
      this.#queue.shift();
      const head = this.#queue[0];
      if (head === undefined) return;
      for (const said of head.waiting) this.#pass(said);
      head.waiting.length = 0;
      this.#waiting -= head.size;
    }
  }

  #pass(said: BlockEvent): void {
    said.index = this.#next;
    if (said.type === "close") this.#next++;
    this.#emit(said);
  }
}

/** Blocks of one part of an answer, one after the other. */
export class BlockSequence {
  readonly #lanes: BlockSerializer;
  #opened = false;
  #ended = false;
  /** Events that wait for earlier sequences. */
  readonly waiting: BlockEvent[] = [];
  size = 0;

  constructor(lanes: BlockSerializer) {
    this.#lanes = lanes;
  }

  /** True while a block is open. */
  get opened(): boolean {
    return this.#opened;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Opens a block; the previous one must be closed. */
  open(block: OpenBlock): void {
    this.#opened = true;
    this.#lanes.write(this, { type: "open", index: 0, block });
  }

  /** Adds text to the open block. */
  delta(text: string): void {
    if (text !== "") this.#lanes.write(this, { type: "delta", index: 0, text });
  }

  citation(citation: Citation): void {
    this.#lanes.write(this, { type: "citation", index: 0, citation });
  }

  /** Closes the open block, if there is one. */
  close(signature?: Signature): void {
    if (!this.#opened) return;
    this.#opened = false;
    this.#lanes.write(
      this,
      signature === undefined ? { type: "close", index: 0 } : { type: "close", index: 0, signature },
    );
  }

  /** Closes the open block, if there is one, and ends the sequence. */
  end(signature?: Signature): void {
    this.close(signature);
    this.#ended = true;
    this.#lanes.passWaiting();
  }
}

function lengthOf(said: BlockEvent): number {
  switch (said.type) {
    case "open":
      return JSON.stringify(said.block).length;
    case "delta":
      return said.text.length;
    case "citation":
      return JSON.stringify(said.citation).length;
    case "close":
      return said.signature?.value.length ?? 0;
  }
}
