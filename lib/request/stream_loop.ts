/**
 * The stream loop: reads an answer, translates, measures, meters and writes it step by step, as fast as the client reads,
 * and keeps the client awake while there is nothing to say.
 */
import { GatewayError, toGatewayError } from "../errors.ts";
import { encodeText } from "../server/encode.ts";
import { formatFrames } from "../server/sse.ts";
import { type BodyObserver, setBodyObservable } from "../observe/observed_body.ts";
import { MOST_LATE_MS, type Phase, type PhaseTimers, type StreamTimer } from "../phase_timers.ts";
import { yieldToEventLoop } from "../scheduler.ts";
import type { ReplyEvent } from "../protocols/canonical/types.ts";
import type { Frame } from "../protocols/codec.ts";
import { characterEnd } from "../text.ts";
import type { EventFeed, FrameFeed, Step } from "../upstreams/upstream.ts";
import type { Shown } from "./countable.ts";
import type { EventWriter } from "./event_writer.ts";
import type { StreamMeter } from "./stream_meter.ts";
import type { TargetMeasurement } from "./target_measurement.ts";
import { unreadError } from "./unread_error.ts";

/** An answer of one target: frames of the client's protocol, or events with the writer that makes frames of them. */
export type StreamedAnswer =
  & ({ feed: FrameFeed; writer?: undefined } | { feed: EventFeed; writer: EventWriter })
  & {
    meter: StreamMeter;
    target: TargetMeasurement;
    /** Longest time that the target may take for the whole answer, in milliseconds. */
    totalMs: number;
  };

/** The request that a stream answers. */
export interface StreamedRequest {
  /** The client leaves after the answer has begun. @returns true where the answer is read to its end all the same */
  leave(shown: Readonly<Shown>): boolean;
  /** The client leaves while there is no answer. */
  leaveUnanswered(): void;
  /** No target answers, and the client has left. */
  settleUnanswered(): void;
  /** No target answers, after the response has begun. @returns the frames that say so */
  failUnanswered(error: GatewayError): Frame[];
  /** Frames that end a stream with an error before its answer has begun. */
  errorFrames(error: GatewayError): Frame[];
}

/** How a stream is written. */
export interface StreamLoopOptions {
  request: StreamedRequest;
  timers: PhaseTimers;
  /** Bytes that keep the connection alive in the client's protocol. */
  heartbeat: string;
  /** Silence before a heartbeat, in milliseconds. */
  keepAliveMs: number;
  /** How long the client may leave unread what there is, in milliseconds. */
  unreadMs: number;
}

/** Characters that are encoded in one turn: 8 million Han characters took 60 ms. */
const MOST_CHARACTERS = 262_144;

/** A client that held its answer up for this part of the time for all of it, and so many milliseconds, is to blame. */
const BLAMED_SHARE = 0.1;
const BLAMED_MS = 1_000;

/**
 * One streamed response. Nothing is read unless the client reads, so that a slow reader slows the upstream. Each step is one
 * chunk, a long one several. There is one promise per read: from there on steps are passed by calls, as most streams have
 * one event per read.
 */
export class StreamLoop {
  readonly #options: StreamLoopOptions;
  readonly #timer: StreamTimer;
  /** The client waits for the upstream. */
  readonly #silence: Phase;
  /** The upstream waits for the client. */
  readonly #unread: Phase;
  /** `opening`: the answer has not begun. `draining`: it is read for the bill only. */
  #stage: "opening" | "open" | "draining" | "over" = "opening";
  #opened: PromiseWithResolvers<void> | undefined;
  #answer: StreamedAnswer | undefined;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #listener: BodyObserver | undefined;
  /** Steps that were read and not yet asked for. */
  readonly #ready: (Step | undefined)[] = [];
  #isReading = false;
  #isAsked = false;
  /** The first chunk is a heartbeat: the silence is too long already. */
  #isLate = false;
  #isGone = false;
  /** What is left of a long step. */
  #rest = "";
  /** How long the client has left unread what there was, all times together, in milliseconds. */
  #heldUpMs = 0;
  #ended: PromiseWithResolvers<void> | undefined;

  constructor(options: StreamLoopOptions) {
    this.#options = options;
    this.#timer = options.timers.stream();
    this.#silence = { ms: options.keepAliveMs - MOST_LATE_MS, expire: () => this.#keepAlive() };
    this.#unread = { ms: options.unreadMs, expire: () => this.#giveUp() };
  }

  /**
   * Reads an answer until it has begun: one that fails before can be replaced by another.
   * @throws the error that came in place of a first event
   */
  open(answer: StreamedAnswer): Promise<void> {
    this.#answer = answer;
    this.#ready.length = 0;
    this.#opened = Promise.withResolvers();
    this.#read();
    return this.#opened.promise;
  }

  /**
   * Waits for an answer to begin. One that takes longer than the time between heartbeats begins with one; from then on an
   * error is a part of the stream.
   * @returns false where it is late
   * @throws what `opening` is rejected with, where that happens in time
   */
  async opensInTime(opening: Promise<void>): Promise<boolean> {
    const { timers, keepAliveMs } = this.#options;
    const late = Promise.withResolvers<boolean>();
    const timer = timers.set(keepAliveMs, () => late.resolve(false));
    try {
      if (await Promise.race([opening.then(() => true), late.promise])) return true;
    } finally {
      timers.clear(timer);
    }
    this.#isLate = true;
    opening.catch((thrown) => this.#failUnanswered(thrown));
    return false;
  }

  /** The response's body. */
  body(): ReadableStream<Uint8Array> {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
        this.#timer.begin(this.#unread);
      },
      pull: () => this.#ask(),
      cancel: () => this.leave(),
    }, { highWaterMark: 0 });
    setBodyObservable(body, (listener) => this.#listener = listener);
    return body;
  }

  /** The client leaves before the end. Resolves when nothing more is read. */
  async leave(): Promise<void> {
    this.#isGone = true;
    this.#timer.stop();
    if (this.#stage === "opening") this.#options.request.leaveUnanswered();
    else if (this.#stage === "open") this.#abandon();
    if (this.#stage !== "over") await (this.#ended = Promise.withResolvers()).promise;
    // The body may still be given a last chunk.
    await undefined;
    this.#listener?.over();
  }

  #ask(): void {
    this.#heldUpMs += this.#timer.elapsedMs;
    this.#timer.begin(this.#silence);
    this.#isAsked = true;
    if (!this.#isLate) return this.#next();
    this.#isLate = false;
    this.#keepAlive();
  }

  #keepAlive(): void {
    this.#isAsked = false;
    this.#timer.begin(this.#unread);
    this.#enqueue(this.#options.heartbeat);
  }

  #next(): void {
    if (this.#rest !== "") void yieldToEventLoop().then(() => this.#sendRest());
    else if (this.#stage !== "open") return;
    else if (this.#ready.length > 0) this.#send(this.#ready.shift());
    else if (!this.#isReading) this.#read();
  }

  #read(): void {
    this.#isReading = true;
    const behind = this.#answer?.meter.behind;
    if (behind === undefined) this.#readFeed();
    else behind.then(() => this.#readFeed(), this.#fail);
  }

  #readFeed(): void {
    if (this.#answer?.writer?.isOver === true) this.#take(undefined);
    else this.#answer?.feed.read().then(this.#take, this.#breakOff);
  }

  /** Translates, measures and meters what was read. */
  readonly #take = (read: Step | ReplyEvent[] | undefined): void => {
    const { writer, target, meter } = this.#answer as StreamedAnswer;
    try {
      const step = Array.isArray(read) || read === undefined ? writer?.write(read) : read;
      if (step !== undefined) target.take(step.events);
      const metered = meter.take(step);
      if (metered instanceof Promise) metered.then(this.#deliver, this.#fail);
      else this.#deliver(metered);
    } catch (thrown) {
      this.#fail(thrown);
    }
  };

  readonly #deliver = (step: Step | undefined): void => {
    this.#isReading = false;
    switch (this.#stage) {
      case "opening":
        return this.#deliverOpening(step);
      case "open":
        if (this.#isAsked) return this.#send(step);
        this.#ready.push(step);
        return;
      case "draining":
        if (step === undefined) this.#stop();
        else this.#read();
    }
  };

  /** An answer whose first event is an error has not begun. */
  #deliverOpening(step: Step | undefined): void {
    this.#ready.push(step);
    let hasBegun = step === undefined;
    for (const event of step?.events ?? []) {
      if (event.type === "error" && !hasBegun) return this.#fail(event.error);
      hasBegun ||= event.type !== "start";
    }
    if (!hasBegun) return this.#read();
    this.#stage = "open";
    this.#opened?.resolve();
    if (this.#isGone) this.#abandon();
    else if (this.#isAsked) this.#next();
  }

  #send(step: Step | undefined): void {
    if (step === undefined) return this.#close();
    try {
      const text = formatFrames(step.frames);
      this.#answer?.meter.sent();
      // The stream asks again only after it was given something.
      if (text === "") return this.#next();
      this.#put(text);
    } catch (thrown) {
      this.#stop();
      this.#controller?.error(thrown);
      this.#listener?.over();
    }
  }

  #sendRest(): void {
    if (this.#stage !== "over" && !this.#isGone) this.#put(this.#rest);
  }

  /** Gives the client text, the beginning of it where it is long. */
  #put(text: string): void {
    this.#isAsked = false;
    this.#timer.begin(this.#unread);
    // The client may take it, and ask for more, within the call.
    const end = text.length <= MOST_CHARACTERS ? text.length : characterEnd(text, MOST_CHARACTERS);
    this.#rest = text.slice(end);
    this.#enqueue(text.slice(0, end));
  }

  #enqueue(text: string): void {
    const bytes = encodeText(text);
    this.#listener?.gave(bytes.length);
    this.#controller?.enqueue(bytes);
  }

  /** The feed failed. */
  readonly #breakOff = (thrown: unknown): void => {
    const error = this.#blameClient(thrown);
    this.#answer?.target.broken(error);
    this.#fail(error);
  };

  /** The one place where a stream fails: before its answer has begun another target may still answer. */
  readonly #fail = (thrown: unknown): void => {
    this.#isReading = false;
    if (this.#stage === "over") return;
    if (this.#stage === "opening") {
      this.#answer?.feed.cancel();
      this.#opened?.reject(thrown);
      return;
    }
    const error = toGatewayError(thrown);
    const isTold = this.#answer?.meter.fail(error) === true;
    if (this.#stage === "draining") return this.#stop();
    this.#ready.push(undefined);
    const step = { frames: isTold ? this.#errorFrames(error) : [], events: [] };
    if (this.#isAsked) this.#send(step);
    else this.#ready.unshift(step);
  };

  #errorFrames(error: GatewayError): Frame[] {
    const { feed, writer } = this.#answer ?? {};
    if (writer !== undefined) return writer.fail(error);
    return feed !== undefined && "fail" in feed ? feed.fail(error) : this.#options.request.errorFrames(error);
  }

  /** No target answers, and the response has begun with heartbeats. */
  #failUnanswered(thrown: unknown): void {
    const { request } = this.#options;
    if (this.#isGone) {
      request.settleUnanswered();
      return this.#stop();
    }
    const text = formatFrames(request.failUnanswered(toGatewayError(thrown)));
    this.#stage = "open";
    this.#ready.splice(0, Infinity, undefined);
    if (this.#isAsked) this.#put(text);
    else this.#rest = text;
  }

  /** The fault of the target, unless the client held the answer up for long. */
  #blameClient(thrown: unknown): unknown {
    const totalMs = this.#answer?.totalMs ?? Infinity;
    const heldUpMs = this.#heldUpMs + (this.#isAsked ? 0 : this.#timer.elapsedMs);
    if (!(thrown instanceof GatewayError) || thrown.fault !== "overtime") return thrown;
    if (heldUpMs < BLAMED_MS || heldUpMs < totalMs * BLAMED_SHARE) return thrown;
    const message = `Cannot go on with this answer: it was read too slowly to be whole within ${totalMs / 1000} s`;
    return new GatewayError("too_slow", message);
  }

  /** The client has left an answer that has begun: it is cancelled, or read to its end for the bill. */
  #abandon(): void {
    const { meter } = this.#answer as StreamedAnswer;
    const drains = this.#options.request.leave(meter.shown);
    meter.left(drains);
    if (!drains || this.#ready.includes(undefined)) return this.#stop();
    this.#stage = "draining";
    if (!this.#isReading) this.#read();
  }

  /** The client has not read for too long. It finds the error where it reads on. */
  #giveUp(): void {
    const frames = this.#errorFrames(unreadError(this.#options.unreadMs));
    void this.leave();
    this.#enqueue(this.#rest + formatFrames(frames));
    this.#controller?.close();
  }

  #close(): void {
    this.#stop();
    this.#controller?.close();
    this.#listener?.over();
  }

  #stop(): void {
    this.#stage = "over";
    this.#timer.stop();
    this.#answer?.feed.cancel();
    this.#ended?.resolve();
  }
}
