/**
 * Reads streamed answers of HTTP upstreams: bytes become frames, and frames become steps (relayed) or events
 * (translated).
 */
import { eventsOf, lengthOf } from "../protocols/canonical/aggregate_events.ts";
import type { EventTransform, Machine, Reply, ReplyEvent } from "../protocols/canonical/types.ts";
import { GatewayError } from "../errors.ts";
import { SseReader } from "../server/sse.ts";
import { parseDocument } from "../json/mod.ts";
import { keepKey, LONG_TEXT_CHARS, yieldToEventLoop } from "../scheduler.ts";
import { type Frame, isObjectFrame } from "../protocols/codec.ts";
import type { RelayMachine } from "../protocols/relay.ts";
import type { ContentFilter } from "../redact.ts";
import { characterEnd } from "../text.ts";
import { ANSWER_LIMITS } from "./answers.ts";
import type { UsageEstimator } from "./estimates.ts";
import type { Incoming } from "./transport.ts";
import type { EventFeed, FrameFeed, Step } from "./upstream.ts";

/** Longest text of an event that is passed on at once, in characters. Writing it as JSON takes 4 ms. */
const MAX_TEXT_PART = 262_144;

/**
 * Longest text of one translated answer, in characters. Some protocols repeat the whole text in their last events, so
 * it is kept in memory. The limit is many times the longest answer of any model.
 */
const MAX_ANSWER_TEXT = 16 * 1024 * 1024;

/**
 * Longest translated answer with everything in it, such as signatures, log probabilities and ids, in characters: some
 * of it is kept in memory, too.
 */
const MAX_ANSWER_LENGTH = 2 * MAX_ANSWER_TEXT;

const STREAM = { stream: true };

/**
 * Returns a function that decodes the next bytes of an answer's server-sent events, or the end without `bytes`, into
 * frames. It returns a promise if a frame is long.
 * @param filter removes the gateway's key; undefined if there is none
 * @param runForKey runs the parsing of long frames for the API key of the request
 */
function frameDecoder(
  filter: ContentFilter | undefined,
  runForKey: ReturnType<typeof keepKey>,
): (bytes: Uint8Array | undefined) => Frame[] | Promise<Frame[]> {
  // The SSE reader removes a byte order mark at the start. The decoder itself would remove one at the start of each
  // read.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const sse = new SseReader();
  return (bytes) => {
    const frames = bytes === undefined
      ? [...sse.push(decoder.decode()), ...sse.end()]
      : sse.push(decoder.decode(bytes, STREAM));
    let hasLong = false;
    for (const frame of frames) {
      // The data is JSON, in which a line break may be replaced by a space.
      if (frame.data.includes("\n")) frame.data = frame.data.replaceAll("\n", " ");
      if (filter !== undefined) {
        frame.data = filter(frame.data);
        if (frame.event !== undefined) frame.event = filter(frame.event);
      }
      hasLong ||= frame.data.length > LONG_TEXT_CHARS;
    }
    return hasLong ? runForKey(() => readLongFrames(frames)) : frames;
  };
}

/** Parses the data of long frames in slices. */
async function readLongFrames(frames: Frame[]): Promise<Frame[]> {
  for (const frame of frames) {
    if (frame.data.length <= LONG_TEXT_CHARS) continue;
    frame.read = await parseDocument(frame.data, { limits: ANSWER_LIMITS }).catch(() => null);
    await yieldToEventLoop();
  }
  return frames;
}

/** Ends reading. Only after a complete answer can the connection carry the next request. */
function endReading(incoming: Incoming, isComplete: boolean): void {
  if (isComplete) incoming.release();
  else incoming.cancel();
}

/** Translates frames of a relayed answer into frames for the client and canonical events. Synchronous. */
export class RelayTranslator {
  readonly #reader: Machine<Frame, ReplyEvent>;
  readonly #machine: RelayMachine;
  #isOver = false;
  #isComplete = false;

  constructor(reader: Machine<Frame, ReplyEvent>, machine: RelayMachine) {
    this.#reader = reader;
    this.#machine = machine;
  }

  /** True after the end of the answer, complete or failed. Later frames are not passed on. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** True after the `finish` event. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Translates the next frames. @param areLast true at the end of the upstream's stream */
  push(frames: readonly Frame[], areLast: boolean): Step {
    const step: Step = { frames: [], events: [], contentFrames: 0 };
    for (const frame of frames) {
      this.#take(this.#reader.push(frame), step, frame);
      if (this.#isOver) break;
    }
    if (areLast && !this.#isOver) {
      this.#take(this.#reader.end(), step);
      this.#isOver = true;
    }
    if (this.#isComplete) step.frames.push(...this.#machine.end());
    return step;
  }

  /** Returns the frames that end the answer with an error. */
  fail(error: GatewayError): Frame[] {
    return this.#machine.fail(error);
  }

  /** Adds events, and the frame that they were read from, to a step. */
  #take(events: readonly ReplyEvent[], step: Step, frame?: Frame): void {
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
    // Frames without an object, such as the mark of the end, are not relayed: clients would try to parse them.
    else if (frame !== undefined && isObjectFrame(frame)) {
      for (const passed of this.#machine.push(frame)) step.frames.push(passed);
    }
    if (hasContent) step.contentFrames = step.frames.length;
  }
}

/** Returns the feed of a relayed answer. @param filter removes the gateway's key; undefined if there is none */
export function relayFeed(
  incoming: Incoming,
  filter: ContentFilter | undefined,
  translator: RelayTranslator,
): FrameFeed {
  const decode = frameDecoder(filter, keepKey());
  let over = false;

  function take(bytes: Uint8Array | undefined): Step | Promise<Step> {
    over = bytes === undefined;
    const frames = decode(bytes);
    return Array.isArray(frames) ? pass(frames) : frames.then(pass);
  }

  function pass(frames: Frame[]): Step {
    const step = translator.push(frames, over);
    if (translator.isOver) {
      over = true;
      endReading(incoming, translator.isComplete);
    }
    return step;
  }

  return {
    read: () => over ? Promise.resolve(undefined) : incoming.read().then(take),
    fail: (error) => translator.fail(error),
    cancel() {
      over = true;
      incoming.cancel();
    },
  };
}

/** The steps that turn an upstream's frames into canonical events. */
export interface EventTranslation {
  reader: Machine<Frame, ReplyEvent>;
  /** Reverses in the answer what `adaptPrompt` changed in the prompt. */
  restore: EventTransform;
  estimator: UsageEstimator;
  /** Returns an error of the upstream with the client's names of parameters. */
  inClientTerms(error: GatewayError): GatewayError;
}

/**
 * Returns the feed of a translated answer. A long text is split over several reads.
 * @param filter as for `relayFeed`
 */
export function translatedFeed(
  incoming: Incoming,
  filter: ContentFilter | undefined,
  { reader, restore, estimator, inClientTerms }: EventTranslation,
): EventFeed {
  const runForKey = keepKey();
  const decode = frameDecoder(filter, runForKey);
  /** True after the end of the answer. */
  let over = false;
  /** True after the end of the upstream's stream. */
  let ended = false;
  let textLength = 0;
  let length = 0;
  /** Events of a long frame that are not yet read. */
  let remaining: Generator<ReplyEvent[], void> | undefined;

  function take(bytes: Uint8Array | undefined): Promise<ReplyEvent[] | undefined> | ReplyEvent[] {
    return takeOnce(bytes) ?? readOn();
  }

  /** @returns undefined if the bytes contain no event */
  function takeOnce(bytes: Uint8Array | undefined): Promise<ReplyEvent[] | undefined> | ReplyEvent[] | undefined {
    ended = bytes === undefined;
    const frames = decode(bytes);
    return Array.isArray(frames) ? pass(frames) : frames.then(takeLong);
  }

  /**
   * Reads until there is an event. It is a loop, because a chain of promises would grow with each read without events.
   */
  async function readOn(): Promise<ReplyEvent[] | undefined> {
    while (!over) {
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

  /** @returns undefined if the frames contain no event */
  function pass(frames: readonly Frame[]): ReplyEvent[] | Promise<ReplyEvent[]> | undefined {
    const events: ReplyEvent[] = [];
    for (const frame of frames) restoreAll(reader.push(frame), events);
    if (ended) restoreAll(reader.end(), events);
    const isTooLong = textLength > MAX_ANSWER_TEXT || length > MAX_ANSWER_LENGTH;
    const last = events.at(-1)?.type;
    if (isTooLong && last !== "finish" && last !== "error") {
      const error = new GatewayError("upstream", "The model's answer is too long", { fault: "oversized" });
      events.push({ type: "error", error });
    }
    over ||= ended;
    let isComplete = false;
    for (const event of events) {
      if (event.type === "finish") isComplete = true;
      if (event.type === "error") event.error = inClientTerms(event.error);
      if (event.type === "finish" || event.type === "error") over = true;
    }
    if (over) endReading(incoming, isComplete);
    return events.length === 0 ? undefined : estimator.estimate(events);
  }

  function restoreAll(read: readonly ReplyEvent[], out: ReplyEvent[]): void {
    for (const event of read) {
      if ("index" in event) length += lengthOf(event);
      if (event.type === "delta") textLength += event.text.length;
      for (const restored of restore(event)) out.push(restored);
    }
  }

  function read(): Promise<ReplyEvent[] | undefined> {
    if (remaining !== undefined) return nextTexts();
    return over ? Promise.resolve(undefined) : incoming.read().then(take);
  }

  async function nextTexts(): Promise<ReplyEvent[] | undefined> {
    await runForKey(yieldToEventLoop);
    const events = remaining?.next().value;
    if (events !== undefined) return events;
    remaining = undefined;
    return await read();
  }

  return {
    read,
    cancel() {
      over = true;
      remaining = undefined;
      incoming.cancel();
    },
  };
}

/** Yields the events in their order, in lists with at most one part of a long text each. */
function* splitTexts(events: readonly ReplyEvent[]): Generator<ReplyEvent[], void> {
  let part: ReplyEvent[] = [];
  for (const event of events) {
    if (event.type !== "delta" || event.text.length <= MAX_TEXT_PART) {
      part.push(event);
      continue;
    }
    const { text } = event;
    for (let from = 0; from < text.length;) {
      const to = characterEnd(text, from + MAX_TEXT_PART);
      part.push({ ...event, text: text.slice(from, to) });
      yield part;
      part = [];
      from = to;
    }
  }
  if (part.length > 0) yield part;
}

/** Returns the events of a whole answer. `restore` reverses what `adaptPrompt` changed. */
export function restoredEvents(reply: Reply, restore: EventTransform): ReplyEvent[] {
  return eventsOf(reply).flatMap(restore);
}

/** Returns a feed that gives a whole answer in one read. */
export function wholeFeed(answer: ReplyEvent[], estimator: UsageEstimator): EventFeed {
  let events: ReplyEvent[] | undefined = answer;
  return {
    async read() {
      const unread = events;
      events = undefined;
      return unread === undefined ? undefined : await estimator.estimate(unread);
    },
    cancel: () => void (events = undefined),
  };
}
