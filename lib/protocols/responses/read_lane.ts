/** One block at a time, out of items that come all at once. */
import type { Citation, Event, OpenBlock, Signature } from "../../canonical/types.ts";

/** What a step weighs beside its text. */
const STEP_SIZE = 64;

/** An event of a block. Its index is known when it goes out. */
type BlockEvent = Extract<Event, { index: number }>;

/** Slots in their order: what the first unfinished one says goes out at once, what the others say waits for it. */
export class Lane {
  readonly #queue: Slot[] = [];
  #out: Event[] = [];
  /** Index of the next block, or of the one that is open. */
  #next = 0;
  #waiting = 0;

  /** Size of what waits for its turn, in characters or so. */
  get waiting(): number {
    return this.#waiting;
  }

  /** A new slot behind all others. */
  slot(): Slot {
    const slot = new Slot(this);
    this.#queue.push(slot);
    return slot;
  }

  /** The events that can go out by now. */
  take(): Event[] {
    const events = this.#out;
    this.#out = [];
    return events;
  }

  /** Takes what a slot says. */
  say(slot: Slot, said: BlockEvent): void {
    if (this.#queue[0] === slot) return this.#emit(said);
    const size = STEP_SIZE + lengthOf(said);
    slot.held.push(said);
    slot.size += size;
    this.#waiting += size;
  }

  /** A slot has ended: those at the head that have are left, and the next one says what it has. */
  advance(): void {
    while (this.#queue[0]?.ended === true) {
      this.#queue.shift();
      const head = this.#queue[0];
      if (head === undefined) return;
      for (const said of head.held) this.#emit(said);
      head.held.length = 0;
      this.#waiting -= head.size;
      head.size = 0;
    }
  }

  #emit(said: BlockEvent): void {
    said.index = this.#next;
    if (said.type === "close") this.#next++;
    this.#out.push(said);
  }
}

/** What an item says, in its own order. */
export class Slot {
  readonly #lane: Lane;
  #ended = false;
  /** What waits for the slots before, and its size. */
  readonly held: BlockEvent[] = [];
  size = 0;

  constructor(lane: Lane) {
    this.#lane = lane;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** Opens a block; the one before it must be closed. */
  open(block: OpenBlock): void {
    this.#lane.say(this, { type: "open", index: 0, block });
  }

  /** A piece of the open block's text. Empty pieces are left out. */
  delta(text: string): void {
    if (text !== "") this.#lane.say(this, { type: "delta", index: 0, text });
  }

  citation(citation: Citation): void {
    this.#lane.say(this, { type: "citation", index: 0, citation });
  }

  close(signature?: Signature): void {
    this.#lane.say(
      this,
      signature === undefined ? { type: "close", index: 0 } : { type: "close", index: 0, signature },
    );
  }

  /** The item says nothing more. */
  end(): void {
    this.#ended = true;
    this.#lane.advance();
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
    default:
      return 0;
  }
}
