/** Passing a protocol's own text through, for clients and upstreams that speak the same one. */
import type { GatewayError } from "../errors.ts";
import type { Edits, ObjectText } from "../json/mod.ts";
import { replaceSpan } from "../text.ts";
import type { Echo, Frame } from "./codec.ts";
import { findInFrame } from "./long_frame.ts";

/** A stream on its way through: its frames stay what they were, apart from the edits each protocol documents. */
export interface RelayMachine {
  /** What the client gets for a frame of the upstream's. */
  push(frame: Frame): Frame[];
  /** What the client gets when the answer is complete. */
  end(): Frame[];
  /** What the client gets when the answer breaks off: the protocol's own error, not a clean end. */
  fail(error: GatewayError): Frame[];
}

/** The same protocol on both sides. */
export interface Relay {
  /** What the body of a request for a stream must have or lose, whatever the client sent; absent: nothing. */
  streamEdits?(body: ObjectText): Edits;
  /** What the body of any request must have or lose so that its answer can be kept; absent: nothing. */
  keeperEdits?(echo: Echo, body: ObjectText): Edits;
  /** Keeps a whole answer, if it is to be kept. @returns the answer without what only `keeperEdits` asked for */
  keepReply?(answer: ObjectText, echo: Echo): ObjectText;
  machine(echo: Echo): RelayMachine;
}

/** A whole answer with the public id of the model. */
export function relayedReply({ text, members }: ObjectText, { model }: Echo): string {
  const member = members.find(({ name }) => name === "model");
  return member === undefined ? text : replaceSpan(text, member, JSON.stringify(model));
}

/** A frame's data with the public id of the model at a path of member names, where it has one there. */
export function withModel(frame: Frame, path: readonly string[], model: string): string {
  const span = findInFrame(frame, path);
  return span === undefined ? frame.data : replaceSpan(frame.data, span, JSON.stringify(model));
}
