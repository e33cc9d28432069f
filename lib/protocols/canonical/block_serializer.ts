/** Puts blocks that come side by side one after the other: the canonical form has one open at a time. */
import type { Citation, OpenBlock, ReplyEvent, Signature } from "./types.ts";

/** What an event that waits weighs beside its text. */
const EVENT_SIZE = 64;

/** An event of a block. Its index is known when it goes out. */
type BlockEvent = Extract<ReplyEvent, { index: number }>;

/** The lanes of one answer. What the first that has not ended says goes out at once; what the others say waits for it. */
export class BlockSerializer {
  readonly #emit: (event: ReplyEvent) => void;
  readonly #queue: BlockSequence[] = [];
  /** Index of the next block, or of the one that is open. */
  #next = 0;
  #waiting = 0;

  /** @param emit takes the events of blocks, in legal order */
  constructor(emit: (event: ReplyEvent) => void) {
    this.#emit = emit;
  }

  /** Size of what waits for its turn, in characters or so. */
  get waiting(): number {
    return this.#waiting;
  }

  /** A new lane behind all others. One that ends with nothing said was never there. */
  addSequence(): BlockSequence {
    const lane = new BlockSequence(this);
    this.#queue.push(lane);
    return lane;
  }

  /** Takes what a lane says. Texts that wait one behind the other become one. */
  write(lane: BlockSequence, said: BlockEvent): void {
    if (this.#queue[0] === lane) return this.#pass(said);
    const size = EVENT_SIZE + lengthOf(said);
    const last = lane.waiting.at(-1);
    if (said.type === "delta" && last?.type === "delta") last.text += said.text;
    else lane.waiting.push(said);
    lane.size += size;
    this.#waiting += size;
  }

  /** A lane has ended: those at the head that have are left, and the next one says what it has. */
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

/** What one part of an answer says, in its own order: any number of blocks, one at a time. */
export class BlockSequence {
  readonly #lanes: BlockSerializer;
  #opened = false;
  #ended = false;
  /** What waits for the lanes before, and its size. */
  readonly waiting: BlockEvent[] = [];
  size = 0;

  constructor(lanes: BlockSerializer) {
    this.#lanes = lanes;
  }

  /** A block is open. */
  get opened(): boolean {
    return this.#opened;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Opens a block; the one before it must be closed. */
  open(block: OpenBlock): void {
    this.#opened = true;
    this.#lanes.write(this, { type: "open", index: 0, block });
  }

  /** A piece of the open block's text; empty ones say nothing. */
  delta(text: string): void {
    if (text !== "") this.#lanes.write(this, { type: "delta", index: 0, text });
  }

  citation(citation: Citation): void {
    this.#lanes.write(this, { type: "citation", index: 0, citation });
  }

  /** Closes the block that is open, if one is. */
  close(signature?: Signature): void {
    if (!this.#opened) return;
    this.#opened = false;
    this.#lanes.write(
      this,
      signature === undefined ? { type: "close", index: 0 } : { type: "close", index: 0, signature },
    );
  }

  /** Closes the block that is open, if one is. Nothing more is said. */
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
