/** Puts blocks that are open at the same time one after the other. */
import type { Citation, Event, OpenBlock, Signature } from "../../canonical/types.ts";
import { writeJson } from "../../json.ts";

/** Where the events of lanes go. */
export interface LaneSink {
  /** Takes the events, in legal order. */
  emit(event: Event): void;
  /** Is told the length of each text that has to wait. */
  keep(length: number): void;
}

/** Blocks of one answer. The first one that is open is emitted at once, the others wait for it. */
export class Lanes {
  readonly #sink: LaneSink;
  readonly #waiting: Lane[] = [];
  /** Index of the next block, or of the one that is open. */
  #next = 0;

  constructor(sink: LaneSink) {
    this.#sink = sink;
  }

  /** Begins a block. Its place in the answer is where it was entered; one that closes unopened was never there. */
  enter(): Lane {
    const lane = new Lane(this);
    this.#waiting.push(lane);
    return lane;
  }

  /** Whether what a lane says goes out at once. */
  isFirst(lane: Lane): boolean {
    return this.#waiting[0] === lane;
  }

  /** Takes what a lane says. What waits costs its length. */
  say(lane: Lane, said: BlockEvent): void {
    if (this.isFirst(lane)) return this.#emit(said);
    lane.held.push(said);
    if (said.type !== "close") this.#sink.keep(lengthOf(said));
  }

  /** The first lane is closed: those after it say what they have, as far as they are complete. */
  advance(): void {
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      for (const said of first.held.splice(0)) this.#emit(said);
      if (!first.closed) return;
      this.#waiting.shift();
    }
  }

  #emit(said: BlockEvent): void {
    said.index = this.#next;
    if (said.type === "close") this.#next++;
    this.#sink.emit(said);
  }
}

/** An event of a block. Its index is known when it goes out. */
type BlockEvent = Extract<Event, { index: number }>;

/** One block. */
export class Lane {
  readonly #lanes: Lanes;
  #opened = false;
  #closed = false;
  /** What waits for the blocks before. */
  readonly held: BlockEvent[] = [];

  constructor(lanes: Lanes) {
    this.#lanes = lanes;
  }

  get opened(): boolean {
    return this.#opened;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** Opens the block; once, before anything is said in it. */
  open(block: OpenBlock): void {
    this.#opened = true;
    this.#lanes.say(this, { type: "open", index: 0, block });
  }

  /** A piece of its text; empty ones say nothing. */
  delta(text: string): void {
    if (text !== "") this.#lanes.say(this, { type: "delta", index: 0, text });
  }

  citation(citation: Citation): void {
    this.#lanes.say(this, { type: "citation", index: 0, citation });
  }

  close(signature?: Signature): void {
    this.#closed = true;
    if (this.#opened) {
      this.#lanes.say(
        this,
        signature === undefined ? { type: "close", index: 0 } : { type: "close", index: 0, signature },
      );
    }
    if (this.#lanes.isFirst(this)) this.#lanes.advance();
  }
}

function lengthOf(said: BlockEvent): number {
  return said.type === "delta"
    ? said.text.length
    : said.type === "citation"
    ? writeJson(said.citation.value).length
    : 1;
}
