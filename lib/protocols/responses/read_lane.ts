/** One block at a time, out of items that come all at once. */
import type { Citation, Event, OpenBlock, Signature } from "../../canonical/types.ts";

/** What an item says, in its own order. */
export interface Slot {
  /** Opens a block; the one before it must be closed. */
  open(block: OpenBlock): void;
  /** A piece of the open block's text. Empty pieces are left out. */
  delta(text: string): void;
  citation(citation: Citation): void;
  close(signature?: Signature): void;
  /** The item says nothing more. */
  end(): void;
}

/** A lane of slots, in the order in which they were made. */
export interface Lane {
  /** A new slot behind all others. */
  slot(): Slot;
  /** The events that can go out by now. */
  take(): Event[];
  /** Size of what waits for its turn, in characters or so. */
  readonly waiting: number;
}

/** What a step weighs beside its text. */
const STEP_SIZE = 64;

type Step = (index: number) => Event;

interface Waiting {
  steps: Step[];
  size: number;
  ended: boolean;
}

/** What the first unfinished slot says goes out at once; what the others say waits for it. */
export function singleLane(): Lane {
  const queue: Waiting[] = [];
  let out: Event[] = [];
  let next = 0;
  let waiting = 0;

  function advance(): void {
    for (let head = queue[0]; head !== undefined; head = queue[0]) {
      for (const step of head.steps) out.push(step(next));
      head.steps = [];
      waiting -= head.size;
      head.size = 0;
      if (!head.ended) return;
      queue.shift();
    }
  }

  return {
    slot() {
      const self: Waiting = { steps: [], size: 0, ended: false };
      queue.push(self);

      function say(step: Step, value: string | object = ""): void {
        self.steps.push(step);
        if (queue[0] === self) return advance();
        const size = STEP_SIZE + (typeof value === "string" ? value : JSON.stringify(value)).length;
        self.size += size;
        waiting += size;
      }

      return {
        open: (block) => say((index) => ({ type: "open", index, block }), block),
        delta(text) {
          if (text !== "") say((index) => ({ type: "delta", index, text }), text);
        },
        citation: (citation) => say((index) => ({ type: "citation", index, citation }), citation),
        close(signature) {
          say((index) => {
            next++;
            return { type: "close", index, ...(signature !== undefined && { signature }) };
          });
        },
        end() {
          self.ended = true;
          advance();
        },
      };
    },
    take() {
      const events = out;
      out = [];
      return events;
    },
    get waiting() {
      return waiting;
    },
  };
}
