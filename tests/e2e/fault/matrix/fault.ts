/** What a fault is, and what clients may see of it. */
import type { UpstreamProtocol } from "../../../../lib/protocols/upstream_codec.ts";
import type { Play } from "./wire.ts";

/** What a client sees. A number: an error with this status, in the shape of its protocol. */
export type Seen =
  /** The answer, whole. */
  | "answer"
  /** Status 200, a part of the answer, and then an error in the words of its protocol. */
  | "error within"
  | number;

/** One thing, or whichever of several comes first. */
export type SeenOf = Seen | readonly Seen[];

/** One fault. */
export interface WireFault {
  /** Unique, short. */
  name: string;
  about: string;
  /** Absent: nobody listens at all. */
  play?: Play;
  /** What clients of streams see, and clients of whole answers. */
  streamed: SeenOf;
  whole: SeenOf;
  /** What is seen otherwise where `fetch` carries the request. */
  overFetch?: { streamed?: SeenOf; whole?: SeenOf };
  /** What is seen otherwise of upstreams that speak these. */
  of?: Partial<Record<UpstreamProtocol, { streamed?: SeenOf; whole?: SeenOf }>>;
  /** True: time limits are short. */
  stalls?: true;
  /** True: the connection is reset by a byte of the request that nobody reads. */
  resets?: true;
  /** True: the upstream may be asked once more. */
  again?: true;
  /** Who counted the tokens of an answer; absent: the upstream. `either`: it depends on the protocol. */
  counted?: "gateway" | "either";
  /** True: it never ends by itself, or is far larger than memory should be. */
  floods?: true;
}
