/** Relays answers unchanged between clients and upstreams with the same protocol. */
import type { GatewayError } from "../errors.ts";
import { type Edits, findValue, type ObjectText } from "../json/mod.ts";
import { replaceSpan, type Span } from "../text.ts";
import type { Echo, Frame } from "./codec.ts";

/** Relays a stream: frames stay unchanged except for the edits documented by each protocol. */
export interface RelayMachine {
  /** Returns the client's frames for an upstream frame. */
  push(frame: Frame): Frame[];
  /** Returns the last frames of a complete answer. */
  end(): Frame[];
  /** Returns the frames of a failed answer: the protocol's error, not a clean end. */
  fail(error: GatewayError): Frame[];
}

/** Relays one protocol. */
export interface Relay {
  /** Member of an answer that names the model; absent: `model`. */
  readonly replyModel?: string;
  /** Edits of the body of any request that name the model; absent: the member `model`. */
  modelEdits?(model: string): Edits;
  /** Edits of the body of a streaming request; absent: none. */
  streamEdits?(body: ObjectText): Edits;
  /** Edits of the body of any request whose answer is stored; absent: none. */
  keeperEdits?(echo: Echo, body: ObjectText): Edits;
  /** Stores a whole answer if required. @returns the answer without the parts that only `keeperEdits` requested */
  keepReply?(answer: ObjectText, echo: Echo): ObjectText;
  machine(echo: Echo): RelayMachine;
}

/** Replaces the model at a path in a frame's data, if there is one, by its public id. */
export function withModel(frame: Frame, path: readonly string[], model: string): string {
  const span = findInFrame(frame, path);
  return span === undefined ? frame.data : replaceSpan(frame.data, span, JSON.stringify(model));
}

/** As `findValue`, for a frame's data. */
export function findInFrame(frame: Frame, path: readonly string[]): Span | undefined {
  if (frame.read === undefined) return findValue(frame.data, path);
  const [first, ...others] = path;
  const member = frame.read.parsed?.members.find(({ name }) => name === first);
  if (member === undefined || others.length === 0) return member;
  const inner = findValue(frame.data.slice(member.start, member.end), others);
  return inner && { start: member.start + inner.start, end: member.start + inner.end };
}
