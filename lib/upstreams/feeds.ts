/** An upstream's answer on its way to the client: as frames, as events, or passed through. */
import { fold, unfold } from "../canonical/fold.ts";
import type { Event, Machine, Reply } from "../canonical/types.ts";
import { GatewayError } from "../errors.ts";
import { sseReader } from "../http/sse.ts";
import type { Frame } from "../protocols/codec.ts";
import type { RelayMachine } from "../protocols/relay.ts";
import type { Mend } from "./mends/mend.ts";
import type { Incoming } from "./transport.ts";
import { type EventFeed, type FrameFeed, isSaid, type Step } from "./upstream.ts";

/** The answer's frames, as they arrive. */
export interface FrameSource {
  /** The next frames, maybe none; `undefined` after the last. */
  read(): Promise<Frame[] | undefined>;
  /** As `Incoming.release`. */
  release(): void;
  cancel(): void;
}

/** Reads events off the wire. @throws {GatewayError} `upstream` where the answer is no stream of events */
export function frameSource(incoming: Incoming, mend: Mend): FrameSource {
  const type = incoming.header("content-type") ?? "";
  if (!/^text\/event-stream\b/i.test(type)) {
    incoming.cancel();
    throw new GatewayError("upstream", "Cannot read the upstream's answer: expected a stream of events");
  }
  const decoder = new TextDecoder();
  const sse = sseReader();
  let over = false;
  return {
    async read() {
      if (over) return undefined;
      const piece = await incoming.read();
      const frames = piece === undefined
        ? [...sse.push(decoder.decode()), ...sse.end()]
        : sse.push(decoder.decode(piece, { stream: true }));
      over = piece === undefined;
      const lines = frames.map(oneLine);
      return mend.frame === undefined ? lines : lines.flatMap((frame) => mend.frame?.(frame) ?? []);
    },
    release: () => incoming.release(),
    cancel: () => incoming.cancel(),
  };
}

/** All data is JSON, in which a line break is a space. */
function oneLine(frame: Frame): Frame {
  return frame.data.includes("\n") ? { ...frame, data: frame.data.replaceAll("\n", " ") } : frame;
}

/** Frames through a reader and what `adapt` must undo, until the answer's end. */
export function eventFeed(
  source: FrameSource,
  reader: Machine<Frame, Event>,
  restore: Machine<Event, Event>,
): EventFeed {
  let over = false;
  return {
    async read() {
      while (!over) {
        const frames = await source.read();
        const read = (frames ?? []).flatMap((frame) => reader.push(frame));
        if (frames === undefined) read.push(...reader.end());
        const events = read.flatMap((event) => restore.push(event));
        if (frames === undefined) events.push(...restore.end());
        if (frames === undefined || events.some(isLast)) {
          over = true;
          leave(source, events);
        }
        if (events.length > 0) return events;
      }
      return undefined;
    },
    cancel() {
      over = true;
      source.cancel();
    },
  };
}

/** Frames that pass, and the events that they mean. What comes after the answer's end is not read. */
export function relayFeed(source: FrameSource, reader: Machine<Frame, Event>, machine: RelayMachine): FrameFeed {
  let over = false;
  return {
    async read() {
      if (over) return undefined;
      const frames = await source.read();
      const step: Step = { frames: [], events: [] };
      for (const frame of frames ?? []) {
        const events = reader.push(frame);
        step.events.push(...events);
        const error = events.find((event) => event.type === "error");
        if (error !== undefined) step.frames.push(...machine.fail(error.error));
        else if (!isEmpty(frame)) step.frames.push(...machine.push(frame));
        if (isSaid(events)) step.spoken = step.frames.length;
        over = events.some(isLast);
        if (over) break;
      }
      if (frames === undefined && !over) {
        over = true;
        const events = reader.end();
        step.events.push(...events);
        const error = events.find((event) => event.type === "error");
        if (error !== undefined) step.frames.push(...machine.fail(error.error));
      }
      if (over) {
        leave(source, step.events);
        if (step.events.some((event) => event.type === "finish")) step.frames.push(...machine.end());
      }
      return step;
    },
    fail: (error) => machine.fail(error),
    cancel() {
      over = true;
      source.cancel();
    },
  };
}

/** An event without data, or with a comment in its place, says nothing; clients would look for JSON in it. */
function isEmpty({ data }: Frame): boolean {
  return data === "" || data.startsWith(":");
}

/** A connection over which a whole answer came is good for another one. */
function leave(source: FrameSource, events: readonly Event[]): void {
  if (events.some((event) => event.type === "finish")) source.release();
  else source.cancel();
}

function isLast(event: Event): boolean {
  return event.type === "finish" || event.type === "error";
}

/** A whole answer, through what `adapt` must undo. */
export function restored(reply: Reply, restore: Machine<Event, Event>): Reply {
  return fold([...unfold(reply).flatMap((event) => restore.push(event)), ...restore.end()]);
}

/** A whole answer as a feed of one step. */
export function wholeFeed(reply: Reply): EventFeed {
  let events: Event[] | undefined = unfold(reply);
  return {
    read() {
      const all = events;
      events = undefined;
      return Promise.resolve(all);
    },
    cancel: () => void (events = undefined),
  };
}
