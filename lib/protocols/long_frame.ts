/** Frames with long data, which is parsed in advance and in slices, so that it does not block the event loop. */
import { findValue, type Json } from "../json/mod.ts";
import type { Span } from "../text.ts";
import type { Frame } from "./codec.ts";

/** The value of a frame's data: parsed in advance, or by `parse`. `undefined` if it is not JSON. */
export function valueOf({ data, read }: Frame, parse: (text: string) => Json | undefined): Json | undefined {
  return read === undefined ? parse(data) : read.parsed?.value;
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
