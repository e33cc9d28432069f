/** Faults, and what clients may see of them. */
import type { Protocol } from "../../../../lib/protocols/canonical/types.ts";
import type { Play } from "./wire.ts";

/** Outcome for a client. A number: an error with this status, in the shape of its protocol. */
export type Seen =
  /** The answer, whole. */
  | "answer"
  /** Status 200, a part of the answer, and then an error event of its protocol. */
  | "error within"
  | number;

/** One outcome, or any of several, depending on the order of events. */
export type SeenOf = Seen | readonly Seen[];

/** One fault. */
export interface WireFault {
  /** Unique, short. */
  name: string;
  about: string;
  /** Absent: the port has no listener. */
  play?: Play;
  /** Outcomes for streaming clients and for clients of whole answers. */
  streamed: SeenOf;
  whole: SeenOf;
  /** Different outcomes over `fetch`. */
  overFetch?: { streamed?: SeenOf; whole?: SeenOf };
  /** Different outcomes for these upstream protocols. */
  of?: Partial<Record<Protocol, { streamed?: SeenOf; whole?: SeenOf }>>;
  /** True: time limits are short. */
  stalls?: true;
  /** True: a request byte that is never read resets the connection. */
  resets?: true;
  /** True: the upstream may be asked once more. */
  again?: true;
  /** Counter of the tokens of an answer; absent: the upstream. `either`: it depends on the protocol. */
  counted?: "gateway" | "either";
  /** True: it never ends by itself, or is far larger than memory should be. */
  floods?: true;
}
