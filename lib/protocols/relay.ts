/** Passing a protocol's own text through, for clients and upstreams that speak the same one. */
import type { GatewayError } from "../errors.ts";
import { findValue, replaceSpan } from "../json_splice.ts";
import type { Echo, Frame } from "./codec.ts";

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
  /** Members that a body must have or lose whatever the client sent, as JSON text; `undefined` removes one. */
  bodyEdits(body: { streamed: boolean; text: string }): Record<string, string | undefined>;
  /** A whole answer with the public id of the model. */
  reply(text: string, echo: Echo): string;
  machine(echo: Echo): RelayMachine;
}

/** A text of the upstream's with the public id of the model at a path of member names, where it has one there. */
export function withModel(text: string, path: readonly string[], model: string): string {
  const span = findValue(text, path);
  return span === undefined ? text : replaceSpan(text, span, JSON.stringify(model));
}
