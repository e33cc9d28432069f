/** The interface for relaying text unchanged between clients and upstreams of the same protocol. */
import type { GatewayError } from "../errors.ts";
import { type Edits, findValue, type ObjectText, scanElements } from "../json/mod.ts";
import { replaceSpan, type Span } from "../text.ts";
import type { Frame, ResponseContext } from "./codec.ts";

/** Relays a stream. Frames stay unchanged except for the edits that each protocol documents. */
export interface RelayMachine {
  /** Returns the client's frames for an upstream frame. */
  push(frame: Frame): Frame[];
  /** Returns the last frames of a complete answer. */
  end(): Frame[];
  /** Returns the frames that end a failed answer: the protocol's error, and no regular end. */
  fail(error: GatewayError): Frame[];
}

/** The relay of one protocol. */
export interface Relay {
  /** Member of an answer that names the model; absent: `model`. */
  readonly replyModel?: string;
  /** Returns the edits of a request body that set the model; absent: the member `model` is set. */
  modelEdits?(model: string): Edits;
  /** Returns the names of members that ask for the default, which vendors refuse; absent: there are none. */
  unsetMembers?(body: ObjectText): string[];
  /** Returns further edits of the body of a streaming request; absent: there are none. */
  streamEdits?(body: ObjectText): Edits;
  /** Returns further edits of the body of a request whose answer is stored; absent: there are none. */
  keeperEdits?(context: ResponseContext, body: ObjectText): Edits;
  /** Edits a whole answer, except for its model, and stores it if required; absent: it stays as it is. */
  editReply?(answer: ObjectText, context: ResponseContext): ObjectText;
  /** Creates the machine that relays one stream. */
  machine(context: ResponseContext): RelayMachine;
}

/** Returns a frame's data with the public id in place of the model at a path, if there is one. */
export function withModel(frame: Frame, path: readonly string[], model: string): string {
  const span = findInFrame(frame, path);
  return span === undefined ? frame.data : replaceSpan(frame.data, span, JSON.stringify(model));
}

/** As `findValue`, for a frame's data. */
export function findInFrame(frame: Frame, path: readonly string[]): Span | undefined {
  if (frame.read === undefined) return findValue(frame.data, path);
  const [first, ...others] = path;
  const member = frame.read?.members.find(({ name }) => name === first);
  if (member === undefined || others.length === 0) return member;
  const inner = findValue(frame.data.slice(member.start, member.end), others);
  return inner && { start: member.start + inner.start, end: member.start + inner.end };
}

/** Edits the text of a member's value, if the object has it. */
export function editMember(object: string, name: string, edit: (value: string) => string): string {
  const span = findValue(object, [name]);
  return span === undefined ? object : replaceSpan(object, span, edit(object.slice(span.start, span.end)));
}

/** Edits the text of each element of a list. Anything else than a list stays as it is. */
export function editElements(list: string, edit: (element: string) => string): string {
  if (!list.startsWith("[")) return list;
  let edited = "";
  let copied = 0;
  for (const { start, end } of scanElements(list)) {
    edited += list.slice(copied, start) + edit(list.slice(start, end));
    copied = end;
  }
  return edited + list.slice(copied);
}
