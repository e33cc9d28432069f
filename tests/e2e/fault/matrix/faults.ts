/** All upstream faults, how they are played over the wire, and what a client of the gateway sees of each. */
import { CONNECTIONS, SILENCE } from "./connections.ts";
import { ERRORS } from "./errors.ts";
import type { WireFault } from "./fault.ts";
import { FLOODS } from "./floods.ts";
import { CODINGS, FRAMING } from "./framing.ts";
import { NUMBERS } from "./numbers.ts";
import { WORDS } from "./words.ts";
import { send } from "./written.ts";

/** The sound answer, to compare with. */
export const NOTHING_WRONG: WireFault = {
  name: "nothing wrong",
  about: "To compare: a good answer",
  play: send,
  streamed: "answer",
  whole: "answer",
};

/** Every fault, in the order of the documentation, in groups. */
export const GROUPS: Readonly<Record<string, readonly WireFault[]>> = {
  "Connections": [NOTHING_WRONG, ...CONNECTIONS],
  "Silence": SILENCE,
  Content: WORDS,
  "Errors": ERRORS,
  "Numbers of tokens": NUMBERS,
  "Too much": FLOODS,
  "Where an answer ends": FRAMING,
  "Codings": CODINGS,
};

export const FAULTS: readonly WireFault[] = Object.values(GROUPS).flat();
