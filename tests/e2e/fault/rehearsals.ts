/** The table of all faults that can be rehearsed, and what the client of a gateway sees of each. */
import type { Seen } from "./matrix/fault.ts";

/** Time at which an answer stalls. */
export type Stall = "at once" | "after events";

/** One rehearsal. */
export interface Rehearsal {
  /** The user's message. */
  ask: string;
  /** Outcomes for streaming clients and for clients of whole answers. */
  streamed: Seen;
  whole: Seen;
  /** Status for clients of the messages protocol where it differs. */
  messages?: number;
  /** Part of the error's text. */
  says?: RegExp;
  /** Headers that go with an error. */
  headers?: Readonly<Record<string, string>>;
  /** Counter of the tokens; absent: the upstream. */
  counted?: true;
  /** It runs into a time limit, which is short then. */
  stalls?: Stall;
  /** True: the fault needs sockets. */
  wire?: true;
}

/** The table. */
export const REHEARSALS: readonly Rehearsal[] = [
  { ask: "nothing wrong", streamed: "answer", whole: "answer" },
  { ask: "status:400", streamed: 400, whole: 400, says: /Rehearsal/ },
  { ask: "status:401", streamed: 502, whole: 502 },
  { ask: "status:403", streamed: 502, whole: 502 },
  { ask: "status:422", streamed: 400, whole: 400 },
  { ask: "status:429 retry-after:3", streamed: 429, whole: 429, headers: { "retry-after": "3" } },
  { ask: "status:500", streamed: 502, whole: 502 },
  { ask: "status:503", streamed: 503, whole: 503, messages: 529 },
  { ask: "status:504", streamed: 504, whole: 504 },
  { ask: "stall:30s", streamed: 504, whole: 504, stalls: "at once", says: /no (whole )?answer within 0\.\d+ s/ },
  {
    ask: "stall-after:0:30s",
    streamed: 504,
    whole: 504,
    stalls: "at once",
    says: /(nothing more|answer) within 0\.\d+ s/,
  },
  {
    ask: "stall-after:3",
    streamed: "error within",
    whole: 504,
    stalls: "after events",
    says: /(nothing more|answer) within 0\.\d+ s/,
  },
  { ask: "stall:50ms", streamed: "answer", whole: "answer" },
  { ask: "slow:5ms", streamed: "answer", whole: "answer" },
  { ask: "cut", streamed: 502, whole: 502 },
  { ask: "cut-after:0", streamed: 502, whole: 502 },
  { ask: "cut-after:3", streamed: "error within", whole: 502 },
  { ask: "error", streamed: 502, whole: 502 },
  { ask: "error-after:0", streamed: 502, whole: 502 },
  { ask: "error-after:3", streamed: "error within", whole: 502 },
  { ask: "garbage", streamed: 502, whole: 502 },
  { ask: "garbage-after:3", streamed: "error within", whole: 502 },
  { ask: "half-event", streamed: 502, whole: 502 },
  { ask: "half-event-after:3", streamed: "error within", whole: 502 },
  { ask: "no-end", streamed: "error within", whole: 502 },
  { ask: "no-usage", streamed: "answer", whole: "answer", counted: true },
  { ask: "wrong-usage", streamed: "answer", whole: "answer", counted: true },
  { ask: "long-line:1mb", streamed: "answer", whole: "answer" },
  { ask: "refuse", streamed: 502, whole: 502 },
  { ask: "reset", streamed: 502, whole: 502, wire: true },
  { ask: "reset-after:0", streamed: 502, whole: 502, wire: true },
  { ask: "reset-after:3", streamed: "error within", whole: 502, wire: true },
  { ask: "drip:5ms", streamed: 504, whole: 504, stalls: "at once", says: /no whole answer within/, wire: true },
  { ask: "split", streamed: "answer", whole: "answer", wire: true },
  { ask: "crlf", streamed: "answer", whole: "answer", wire: true },
  { ask: "bom", streamed: "answer", whole: "answer", wire: true },
  { ask: "wrong-type", streamed: 502, whole: 502, wire: true },
  { ask: "redirect", streamed: 502, whole: 502, wire: true },
  { ask: "huge-headers:2mb", streamed: 502, whole: 502, wire: true },
  { ask: "gzip-bomb:1gb", streamed: 502, whole: 502, wire: true },
  { ask: "long-line:100mb", streamed: 502, whole: 502, wire: true },
  { ask: "bad-chunk", streamed: 502, whole: 502, wire: true },
  { ask: "junk", streamed: 502, whole: 502, wire: true },
];
