/** An upstream's answer on its way to the client: as frames, as events, or passed through. */
import { eventsOf } from "../protocols/canonical/aggregate_events.ts";
import type { Machine, Reply, ReplyEvent } from "../protocols/canonical/types.ts";
import { GatewayError } from "../errors.ts";
import { sseReader } from "../server/sse.ts";
import { parseDocument } from "../json/mod.ts";
import { LONG_TEXT_CHARS, yieldToEventLoop } from "../scheduler.ts";
import type { Frame } from "../protocols/codec.ts";
import type { RelayMachine } from "../protocols/relay.ts";
import type { ContentFilter } from "../redact.ts";
import { characterEnd } from "../text.ts";
import { ANSWER_LIMITS } from "./answers.ts";
import type { Quirk } from "../protocols/quirks/quirk.ts";
import type { Incoming } from "./transport.ts";
import type { EventFeed, FrameFeed, Step } from "./upstream.ts";

/** The answer's frames, as they arrive. */
export interface FrameSource {
  /** The next frames, maybe none; `undefined` after the last. */
  read(): Promise<Frame[] | undefined>;
  /** As `Incoming.release`. */
  release(): void;
  cancel(): void;
}

/** Characters of what a long event says that are passed on, and written for the client, in one turn: quotes take 4 ms. */
const PIECE = 262_144;

/**
 * Reads events off the wire, through the filter; long ones are read as JSON, in steps, before they are given.
 * @throws {GatewayError} `upstream` where the answer is no stream of events
 */
export function frameSource(
  incoming: Incoming,
  { mend, filter }: { mend: Quirk; filter?: ContentFilter | undefined },
): FrameSource {
  const type = incoming.header("content-type") ?? "";
  if (!/^text\/event-stream\b/i.test(type)) {
    incoming.cancel();
    throw new GatewayError("upstream", "Cannot read the upstream's answer: expected a stream of events");
  }
  // The reader drops a byte order mark at the beginning; the decoder would drop others, too, where pieces begin.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const sse = sseReader();
  let over = false;

  function decode(piece: Uint8Array | undefined): Frame[] | Promise<Frame[]> {
    over = piece === undefined;
    const frames = piece === undefined
      ? [...sse.push(decoder.decode()), ...sse.end()]
      : sse.push(decoder.decode(piece, STREAM));
    frames.forEach(joinLines);
    if (filter !== undefined) {
      for (const frame of frames) {
        frame.data = filter(frame.data);
        if (frame.event !== undefined) frame.event = filter(frame.event);
      }
    }
    const mended = mend.frame === undefined ? frames : frames.flatMap((frame) => mend.frame?.(frame) ?? []);
    return mended.some(isLong) ? readLong(mended) : mended;
  }

  return {
    read: () => over ? Promise.resolve(undefined) : incoming.read().then(decode),
    release: () => incoming.release(),
    cancel: () => incoming.cancel(),
  };
}

const STREAM = { stream: true };

/** All data is JSON, in which a line break is a space. */
function joinLines(frame: Frame): void {
  if (frame.data.includes("\n")) frame.data = frame.data.replaceAll("\n", " ");
}

function isLong({ data }: Frame): boolean {
  return data.length > LONG_TEXT_CHARS;
}

async function readLong(frames: Frame[]): Promise<Frame[]> {
  for (const frame of frames) {
    if (!isLong(frame)) continue;
    const parsed = await parseDocument(frame.data, { limits: ANSWER_LIMITS }).catch(() => undefined);
    frame.read = { parsed };
    // What is made of it takes a turn of its own.
    await yieldToEventLoop();
  }
  return frames;
}

/** Frames through a reader and what `adapt` must undo, until the answer's end. What a long one says comes in pieces. */
export function eventFeed(
  source: FrameSource,
  reader: Machine<Frame, ReplyEvent>,
  restore: Machine<ReplyEvent, ReplyEvent>,
): EventFeed {
  let over = false;
  /** What a long frame says and was not given yet. */
  let rest: Generator<ReplyEvent[], void> | undefined;

  function take(frames: Frame[] | undefined): ReplyEvent[] {
    const events: ReplyEvent[] = [];
    for (const frame of frames ?? []) pass(reader.push(frame), events);
    if (frames === undefined) {
      pass(reader.end(), events);
      events.push(...restore.end());
    }
    if (frames === undefined || events.some(isLast)) {
      over = true;
      leave(source, events);
    }
    return events;
  }

  function pass(read: readonly ReplyEvent[], out: ReplyEvent[]): void {
    for (const event of read) {
      for (const restored of restore.push(event)) out.push(restored);
    }
  }

  return {
    async read() {
      if (rest !== undefined) {
        await yieldToEventLoop();
        const piece = rest?.next().value;
        if (piece !== undefined) return piece;
        rest = undefined;
      }
      while (!over) {
        const frames = await source.read();
        const events = take(frames);
        if (events.length === 0) continue;
        if (!frames?.some(isLong)) return events;
        rest = inPieces(events);
        return rest.next().value ?? undefined;
      }
      return undefined;
    },
    cancel() {
      over = true;
      rest = undefined;
      source.cancel();
    },
  };
}

/** The same events in their order, at most one piece of a text at a time. */
function* inPieces(events: readonly ReplyEvent[]): Generator<ReplyEvent[], void> {
  let piece: ReplyEvent[] = [];
  for (const event of events) {
    if (event.type !== "delta" || event.text.length <= PIECE) {
      piece.push(event);
      continue;
    }
    const { text } = event;
    for (let from = 0; from < text.length;) {
      const to = characterEnd(text, from + PIECE);
      piece.push({ ...event, text: text.slice(from, to) });
      yield piece;
      piece = [];
      from = to;
    }
  }
  if (piece.length > 0) yield piece;
}

/** Frames that pass, and the events that they mean. What comes after the answer's end is not read. */
export function relayFeed(source: FrameSource, reader: Machine<Frame, ReplyEvent>, machine: RelayMachine): FrameFeed {
  let over = false;

  function take(frame: Frame, step: Step): void {
    const events = reader.push(frame);
    let error: GatewayError | undefined;
    let said = false;
    for (const event of events) {
      step.events.push(event);
      if (event.type !== "start") said = true;
      if (event.type === "error") error ??= event.error;
      if (isLast(event)) over = true;
    }
    if (error !== undefined) step.frames.push(...machine.fail(error));
    else if (!isEmpty(frame)) {
      for (const passed of machine.push(frame)) step.frames.push(passed);
    }
    if (said) step.spoken = step.frames.length;
  }

  function pass(frames: Frame[] | undefined): Step {
    const step: Step = { frames: [], events: [], spoken: 0 };
    for (const frame of frames ?? []) {
      take(frame, step);
      if (over) break;
    }
    if (frames === undefined && !over) end(step);
    if (over) {
      leave(source, step.events);
      if (step.events.some((event) => event.type === "finish")) step.frames.push(...machine.end());
    }
    return step;
  }

  /** The upstream has ended the stream. */
  function end(step: Step): void {
    over = true;
    for (const event of reader.end()) {
      step.events.push(event);
      if (event.type === "error") step.frames.push(...machine.fail(event.error));
    }
  }

  return {
    read: () => over ? Promise.resolve(undefined) : source.read().then(pass),
    fail: (error) => machine.fail(error),
    cancel() {
      over = true;
      source.cancel();
    },
  };
}

/** An event without data, or with a comment or a mark in its place, says nothing: clients would look for JSON in it. */
function isEmpty({ data }: Frame): boolean {
  return !data.startsWith("{") && !/^[ \t\r\n]*\{/.test(data);
}

/** A connection over which a whole answer came is good for another one. */
function leave(source: FrameSource, events: readonly ReplyEvent[]): void {
  if (events.some((event) => event.type === "finish")) source.release();
  else source.cancel();
}

function isLast(event: ReplyEvent): boolean {
  return event.type === "finish" || event.type === "error";
}

/** A whole answer as events, through what `adapt` must undo. */
export function restored(reply: Reply, restore: Machine<ReplyEvent, ReplyEvent>): ReplyEvent[] {
  const events: ReplyEvent[] = [];
  for (const event of eventsOf(reply)) events.push(...restore.push(event));
  events.push(...restore.end());
  return events;
}

/** A whole answer as a feed of one step. */
export function wholeFeed(answer: ReplyEvent[]): EventFeed {
  let events: ReplyEvent[] | undefined = answer;
  return {
    read() {
      const all = events;
      events = undefined;
      return Promise.resolve(all);
    },
    cancel: () => void (events = undefined),
  };
}
