/** Puts blocks that are open at the same time one after the other. */
import type { Citation, Event, OpenBlock, Signature } from "../../canonical/types.ts";
import { writeJson } from "../../json.ts";

/** One block. Its place in the answer is where it was entered; one that closes unopened was never there. */
export interface Lane {
  readonly opened: boolean;
  /** Opens the block; once, before anything is said in it. */
  open(block: OpenBlock): void;
  /** A piece of its text; empty ones say nothing. */
  delta(text: string): void;
  citation(citation: Citation): void;
  close(signature?: Signature): void;
}

/** What a lane waits to say. Everything but its index is known. */
type Step = (index: number) => Event;

/** The blocks of one answer. */
export interface Lanes {
  enter(): Lane;
}

/**
 * Blocks of one answer. The first one that is open is emitted at once, the others wait for it.
 * @param emit takes the events, in legal order
 * @param keep is told the length of each text that has to wait
 */
export function singleLane(emit: (event: Event) => void, keep: (length: number) => void): Lanes {
  const waiting: { steps: Step[]; closed: boolean }[] = [];
  let next = 0;

  /** Emits what the first lane has to say, and the lanes after it as far as they are complete. */
  function advance(): void {
    for (let first = waiting[0]; first !== undefined; first = waiting[0]) {
      for (const step of first.steps.splice(0)) {
        const event = step(next);
        emit(event);
        if (event.type === "close") next++;
      }
      if (!first.closed) return;
      waiting.shift();
    }
  }

  return {
    enter() {
      const self: { steps: Step[]; closed: boolean } = { steps: [], closed: false };
      let opened = false;
      waiting.push(self);

      function say(step: Step, length: number): void {
        self.steps.push(step);
        if (waiting[0] === self) advance();
        else keep(length);
      }

      return {
        get opened() {
          return opened;
        },
        open(block) {
          opened = true;
          say((index) => ({ type: "open", index, block }), 1);
        },
        delta(text) {
          if (text !== "") say((index) => ({ type: "delta", index, text }), text.length);
        },
        citation(citation) {
          say((index) => ({ type: "citation", index, citation }), writeJson(citation.value).length);
        },
        close(signature) {
          self.closed = true;
          if (opened) self.steps.push((index) => ({ type: "close", index, ...(signature && { signature }) }));
          if (waiting[0] === self) advance();
        },
      };
    },
  };
}
