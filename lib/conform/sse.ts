/** A strict parser for server-sent events, which reports everything that a strict client would fail on. */
import { isObject, type JsonObject } from "../json/mod.ts";
import { Mismatch, show } from "./check.ts";

/** An event. */
export interface WireEvent {
  /** Value of its `event:` line; absent: there was none. */
  name?: string;
  /** Values of its `data:` lines, joined by LF. */
  data: string;
}

/** A parsed stream. */
export interface WireStream {
  events: WireEvent[];
  comments: string[];
  /** Problems for strict clients. */
  faults: string[];
}

/**
 * Parses a stream. The gateway's own parser cannot be used, because it tolerates the problems that are reported here.
 */
export function readWire(text: string): WireStream {
  const stream: WireStream = { events: [], comments: [], faults: [] };
  const faults = new Set<string>();
  if (text.startsWith("\ufeff")) {
    faults.add("a byte order mark at the beginning");
    text = text.slice(1);
  }
  if (text.includes("\r")) faults.add("line ends with CR");
  let name: string | undefined;
  let data: string[] = [];
  const lines = text.replaceAll(/\r\n?/g, "\n").split("\n");
  const unfinishedLine = lines.pop() ?? "";
  for (const line of lines) {
    if (line === "") {
      if (data.length > 0) stream.events.push({ ...(name !== undefined && { name }), data: data.join("\n") });
      else if (name !== undefined) faults.add(`an event "${name}" without data`);
      name = undefined;
      data = [];
      continue;
    }
    const [, field = "", space = "", value = ""] = /^([^:]*):?( ?)(.*)$/.exec(line) ?? [];
    if (field === "" && line.startsWith(":")) {
      stream.comments.push(line.slice(1).trim());
    } else if (field === "data" || field === "event") {
      if (space === "") faults.add(`"${show(line).slice(0, 24)}": no space after the colon`);
      if (field === "data") {
        if (data.length > 0) faults.add("an event with several data lines");
        data.push(value);
      } else name = value;
    } else faults.add(`a line that is not an event: "${show(line).slice(0, 40)}"`);
  }
  if (unfinishedLine !== "" || data.length > 0) faults.add("a last event without its blank line");
  if (data.length > 0) stream.events.push({ ...(name !== undefined && { name }), data: data.join("\n") });
  stream.faults.push(...faults);
  return stream;
}

/** Data of the last event of OpenAI's streams. */
export const DONE = "[DONE]";

/** Returns the data of all events except `[DONE]` as JSON objects. @throws {Mismatch} if one is not an object */
export function bodiesOf({ events }: WireStream): JsonObject[] {
  return events.filter(({ data }) => data !== DONE).map(({ data }) => objectOf(data, "each event's data"));
}

/** Parses a JSON object. @throws {Mismatch} if the text is not one */
export function objectOf(text: string, what: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // Reported below.
  }
  throw new Mismatch(`${what} to be a JSON object`, show(text === "" ? "nothing" : text));
}
