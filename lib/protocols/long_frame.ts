/** Frames so long that their data is read beforehand, in steps, so that no turn is held by one of them. */
import { findValue, type Json } from "../json/mod.ts";
import type { Span } from "../text.ts";
import type { Frame } from "./codec.ts";

/** What a frame's data says: as it was read beforehand, or as `parse` reads it. `undefined` for what is not JSON. */
export function valueOf({ data, read }: Frame, parse: (text: string) => Json | undefined): Json | undefined {
  return read === undefined ? parse(data) : read.parsed?.value;
}

/** As `findValue`, in a frame's data. */
export function findInFrame(frame: Frame, path: readonly string[]): Span | undefined {
  if (frame.read === undefined) return findValue(frame.data, path);
  const [first, ...others] = path;
  const member = frame.read.parsed?.members.find(({ name }) => name === first);
  if (member === undefined || others.length === 0) return member;
  const inner = findValue(frame.data.slice(member.start, member.end), others);
  return inner && { start: member.start + inner.start, end: member.start + inner.end };
}
