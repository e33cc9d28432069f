/**
 * Streamed answers of HTTP upstreams: the bytes of each read become frames, and frames become steps or events, in one
 * pass.
 */
import { eventsOf } from "../protocols/canonical/aggregate_events.ts";
import type { Machine, Reply, ReplyEvent } from "../protocols/canonical/types.ts";
import { GatewayError } from "../errors.ts";
import { SseReader } from "../server/sse.ts";
import { parseDocument } from "../json/mod.ts";
import { LONG_TEXT_CHARS, yieldToEventLoop } from "../scheduler.ts";
import type { Frame } from "../protocols/codec.ts";
import type { RelayMachine } from "../protocols/relay.ts";
import type { ContentFilter } from "../redact.ts";
import { characterEnd } from "../text.ts";
import { ANSWER_LIMITS } from "./answers.ts";
import type { UsageEstimator } from "./estimates.ts";
import type { Quirk } from "../protocols/quirks/quirk.ts";
import type { Incoming } from "./transport.ts";
import type { EventFeed, FrameFeed, Step } from "./upstream.ts";

/** Longest text of an event that is passed on in one turn, in characters: to write it as JSON takes 4 ms. */
const MAX_CHARACTERS = 262_144;

/**
 * Most text of one translated answer, in characters, as clients get all of it again in some last events. It is many
 * times the longest answer of a model.
 */
const MAX_TEXT = 16 * 1024 * 1024;

const STREAM = { stream: true };

/** Functions that turn the bytes of an answer into frames. */
export interface Decoding {
  quirk: Quirk;
  filter?: ContentFilter | undefined;
}

/** Decodes the frames of one answer: server-sent events, through the key filter and the vendor's quirks. */
class FrameDecoder {
  readonly #decoding: Decoding;
  // The SSE reader drops a byte order mark at the start; the decoder would drop others at the start of each read.
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #sse = new SseReader();

  constructor(decoding: Decoding) {
    this.#decoding = decoding;
  }

  /** `bytes`: absent at the end of the answer. */
  decode(bytes: Uint8Array | undefined): Frame[] {
    const { quirk, filter } = this.#decoding;
    const frames = bytes === undefined
      ? [...this.#sse.push(this.#decoder.decode()), ...this.#sse.end()]
      : this.#sse.push(this.#decoder.decode(bytes, STREAM));
    for (const frame of frames) {
      // All data is JSON, in which a line break is a space.
      if (frame.data.includes("\n")) frame.data = frame.data.replaceAll("\n", " ");
      if (filter === undefined) continue;
      frame.data = filter(frame.data);
      if (frame.event !== undefined) frame.event = filter(frame.event);
    }
    return quirk.frame === undefined ? frames : frames.flatMap((frame) => quirk.frame?.(frame) ?? []);
  }
}

/** @throws {GatewayError} `upstream` where the answer is no stream of events */
function requireEventStream(incoming: Incoming): void {
  if (/^text\/event-stream\b/i.test(incoming.header("content-type") ?? "")) return;
  incoming.cancel();
  throw new GatewayError("upstream", "Cannot read the upstream's answer: expected a stream of events");
}

function isLong({ data }: Frame): boolean {
  return data.length > LONG_TEXT_CHARS;
}

/** Parses the data of long frames in slices. */
async function readLongFrames(frames: Frame[]): Promise<Frame[]> {
  for (const frame of frames) {
    if (!isLong(frame)) continue;
    const parsed = await parseDocument(frame.data, { limits: ANSWER_LIMITS }).catch(() => undefined);
    frame.read = { parsed };
    await yieldToEventLoop();
  }
  return frames;
}

/** A connection can carry the next request only after a complete answer. */
function leave(incoming: Incoming, isComplete: boolean): void {
  if (isComplete) incoming.release();
  else incoming.cancel();
}

/** Frames that pass through, and the events that they mean. Synchronous. */
export class RelayTranslator {
  readonly #reader: Machine<Frame, ReplyEvent>;
  readonly #machine: RelayMachine;
  #isOver = false;
  #isComplete = false;

  constructor(reader: Machine<Frame, ReplyEvent>, machine: RelayMachine) {
    this.#reader = reader;
    this.#machine = machine;
  }

  /** True after the end of the answer, complete or failed: later frames are not passed on. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** True after the `finish` event. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  push(frames: readonly Frame[]): Step {
    const step: Step = { frames: [], events: [], contentFrames: 0 };
    for (const frame of frames) {
      this.#take(frame, step);
      if (this.#isOver) break;
    }
    if (this.#isComplete) step.frames.push(...this.#machine.end());
    return step;
  }

  /** The upstream has ended the stream; adds to the last step. */
  end(step: Step): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const event of this.#reader.end()) {
      step.events.push(event);
      if (event.type === "error") step.frames.push(...this.#machine.fail(event.error));
      if (event.type === "finish") this.#isComplete = true;
    }
    if (this.#isComplete) step.frames.push(...this.#machine.end());
  }

  fail(error: GatewayError): Frame[] {
    return this.#machine.fail(error);
  }

  #take(frame: Frame, step: Step): void {
    const events = this.#reader.push(frame);
    let error: GatewayError | undefined;
    let hasContent = false;
    for (const event of events) {
      step.events.push(event);
      if (event.type !== "start") hasContent = true;
      if (event.type === "error") error ??= event.error;
      if (event.type === "finish") this.#isComplete = true;
      if (event.type === "finish" || event.type === "error") this.#isOver = true;
    }
    if (error !== undefined) step.frames.push(...this.#machine.fail(error));
    else if (!isEmpty(frame)) {
      for (const passed of this.#machine.push(frame)) step.frames.push(passed);
    }
    if (hasContent) step.contentFrames = step.frames.length;
  }
}

/** An event without JSON, such as a comment or a mark: clients would look for an object in it. */
function isEmpty({ data }: Frame): boolean {
  return !data.startsWith("{") && !/^[ \t\r\n]*\{/.test(data);
}

/**
 * A stream that is passed through, until the answer's end.
 * @throws {GatewayError} `upstream` where the answer is no stream of events
 */
export function relayFeed(incoming: Incoming, decoding: Decoding, translator: RelayTranslator): FrameFeed {
  requireEventStream(incoming);
  const decoder = new FrameDecoder(decoding);
  let isDone = false;

  function take(bytes: Uint8Array | undefined): Step | Promise<Step> {
    isDone = bytes === undefined;
    const frames = decoder.decode(bytes);
    return frames.some(isLong) ? readLongFrames(frames).then(pass) : pass(frames);
  }

  function pass(frames: Frame[]): Step {
    const step = translator.push(frames);
    if (isDone) translator.end(step);
    if (translator.isOver) {
      isDone = true;
      leave(incoming, translator.isComplete);
    }
    return step;
  }

  return {
    read: () => isDone ? Promise.resolve(undefined) : incoming.read().then(take),
    fail: (error) => translator.fail(error),
    cancel() {
      isDone = true;
      incoming.cancel();
    },
  };
}

/** Machines that make canonical events of an upstream's frames. */
export interface EventTranslation {
  reader: Machine<Frame, ReplyEvent>;
  /** Undoes what `adaptPrompt` did to the prompt. */
  restore: Machine<ReplyEvent, ReplyEvent>;
  estimator: UsageEstimator;
}

/**
 * A stream as canonical events, until the answer's end. Long texts come in several reads.
 * @throws {GatewayError} `upstream` where the answer is no stream of events
 */
export function translatedFeed(
  incoming: Incoming,
  decoding: Decoding,
  { reader, restore, estimator }: EventTranslation,
): EventFeed {
  requireEventStream(incoming);
  const decoder = new FrameDecoder(decoding);
  let isDone = false;
  let ended = false;
  let textLength = 0;
  /** Events of a long frame that were not given yet. */
  let remaining: Generator<ReplyEvent[], void> | undefined;

  function take(bytes: Uint8Array | undefined): Promise<ReplyEvent[] | undefined> | ReplyEvent[] {
    return takeOnce(bytes) ?? readOn();
  }

  /** @returns absent where the bytes mean nothing */
  function takeOnce(bytes: Uint8Array | undefined): Promise<ReplyEvent[] | undefined> | ReplyEvent[] | undefined {
    ended = bytes === undefined;
    const frames = decoder.decode(bytes);
    return frames.some(isLong) ? readLongFrames(frames).then(takeLong) : pass(frames);
  }

  /** A loop, because a chain of promises would grow with each read that means nothing. */
  async function readOn(): Promise<ReplyEvent[] | undefined> {
    while (!isDone) {
      const events = await takeOnce(await incoming.read());
      if (events !== undefined) return events;
    }
    return undefined;
  }

  async function takeLong(frames: Frame[]): Promise<ReplyEvent[] | undefined> {
    const events = await pass(frames);
    if (events === undefined) return await readOn();
    remaining = splitTexts(events);
    return remaining.next().value ?? undefined;
  }

  /** @returns absent where the frames mean nothing */
  function pass(frames: readonly Frame[]): ReplyEvent[] | Promise<ReplyEvent[]> | undefined {
    const events: ReplyEvent[] = [];
    for (const frame of frames) restoreAll(reader.push(frame), events);
    if (ended) {
      restoreAll(reader.end(), events);
      events.push(...restore.end());
    }
    for (const event of events) if (event.type === "delta") textLength += event.text.length;
    if (textLength > MAX_TEXT && events.at(-1)?.type !== "finish") {
      const error = new GatewayError("upstream", "The model's answer is too long", { fault: "oversized" });
      events.push({ type: "error", error });
    }
    isDone ||= ended;
    let isComplete = false;
    for (const { type } of events) {
      if (type === "finish") isComplete = true;
      if (type === "finish" || type === "error") isDone = true;
    }
    if (isDone) leave(incoming, isComplete);
    return events.length === 0 ? undefined : estimator.estimate(events);
  }

  function restoreAll(read: readonly ReplyEvent[], out: ReplyEvent[]): void {
    for (const event of read) {
      for (const restored of restore.push(event)) out.push(restored);
    }
  }

  function read(): Promise<ReplyEvent[] | undefined> {
    if (remaining !== undefined) return nextTexts();
    return isDone ? Promise.resolve(undefined) : incoming.read().then(take);
  }

  async function nextTexts(): Promise<ReplyEvent[] | undefined> {
    await yieldToEventLoop();
    const events = remaining?.next().value;
    if (events !== undefined) return events;
    remaining = undefined;
    return await read();
  }

  return {
    read,
    cancel() {
      isDone = true;
      remaining = undefined;
      incoming.cancel();
    },
  };
}

/** The same events in their order, with at most one part of a long text at a time. */
function* splitTexts(events: readonly ReplyEvent[]): Generator<ReplyEvent[], void> {
  let part: ReplyEvent[] = [];
  for (const event of events) {
    if (event.type !== "delta" || event.text.length <= MAX_CHARACTERS) {
      part.push(event);
      continue;
    }
    const { text } = event;
    for (let from = 0; from < text.length;) {
      const to = characterEnd(text, from + MAX_CHARACTERS);
      part.push({ ...event, text: text.slice(from, to) });
      yield part;
      part = [];
      from = to;
    }
  }
  if (part.length > 0) yield part;
}

/** A whole answer as events, with what `adaptPrompt` did undone. */
export function restored(reply: Reply, restore: Machine<ReplyEvent, ReplyEvent>): ReplyEvent[] {
  const events: ReplyEvent[] = [];
  for (const event of eventsOf(reply)) events.push(...restore.push(event));
  events.push(...restore.end());
  return events;
}

/** A whole answer as a feed of one read. */
export function wholeFeed(answer: ReplyEvent[], estimator: UsageEstimator): EventFeed {
  let events: ReplyEvent[] | undefined = answer;
  return {
    async read() {
      const all = events;
      events = undefined;
      return all === undefined ? undefined : await estimator.estimate(all);
    },
    cancel: () => void (events = undefined),
  };
}
