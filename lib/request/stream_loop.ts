/**
 * The stream loop: reads, translates and meters an answer and writes it as fast as the client reads it. It sends
 * keep-alives while the upstream is silent.
 */
import { GatewayError, toGatewayError, unreadError } from "../errors.ts";
import { formatFrames } from "../server/sse.ts";
import { type ObservableBody, setBodyObservable } from "../observe/observer.ts";
import { MAX_LATE_MS, type Phase, PhaseTimer, type PhaseTimers } from "../phase_timers.ts";
import { keepKey, yieldToEventLoop } from "../scheduler.ts";
import type { Machine, ReplyEvent } from "../protocols/canonical/types.ts";
import type { Frame, StreamFraming } from "../protocols/codec.ts";
import { characterEnd, utf8Bytes } from "../text.ts";
import type { EventFeed, FrameFeed, Step } from "../upstreams/upstream.ts";
import type { TargetMeasurement } from "./attempts.ts";
import { blameClient } from "./blame_client.ts";
import type { RequestState } from "./state.ts";
import type { StreamMeter } from "./stream_meter.ts";
import { writeStep } from "./write_step.ts";

/** An answer of one target: frames in the client's protocol, or events and the writer that encodes them. */
export type StreamedAnswer =
  & ({ feed: FrameFeed; writer?: undefined } | { feed: EventFeed; writer: Machine<ReplyEvent, Frame> })
  & {
    meter: StreamMeter;
    target: TargetMeasurement;
    /** Time limit of the target for the whole answer, in milliseconds. */
    totalMs: number;
  };

/** The part of the request state that the loop calls. */
export type StreamedRequest = Pick<
  RequestState,
  "drainForBill" | "drainOrCancel" | "settleUnanswered" | "failUnanswered" | "errorFrames"
>;

/** Options of a stream. */
export interface StreamLoopOptions {
  request: StreamedRequest;
  timers: PhaseTimers;
  /** Keep-alive in the client's protocol. */
  keepAlive: string;
  /** Absent: the frames are server-sent events. */
  framing?: StreamFraming | undefined;
  /** Silence before a keep-alive, in milliseconds. */
  keepAliveMs: number;
  /** Longest time that the client may take to read data, in milliseconds. */
  unreadMs: number;
}

/**
 * Maximum number of characters encoded at once. Encoding 8 million Han characters at once blocked the event loop for 60
 * ms.
 */
const MAX_CHUNK_LENGTH = 262_144;

/** Maximum number of characters of frames that wait for an answer's first event. More commit the loop to the target. */
const MAX_OPENING_LENGTH = 1_048_576;
/** Memory of a frame besides its data, and of a step besides its frames, in characters. */
const OVERHEAD_LENGTH = 100;

/** The outcome of a wait that timed out. */
const LATE = Symbol("late");

/**
 * One streamed response. The loop reads only when the client does, so that a slow client slows the upstream. A step is
 * one chunk; a long step is several. Each read costs one promise, and all further work is synchronous calls, because
 * most streams bring one event per read.
 */
export class StreamLoop {
  /** Media type of the body; absent: that of server-sent events. */
  readonly contentType: string | undefined;
  readonly #options: StreamLoopOptions;
  readonly #timer: PhaseTimer;
  /** Runs while the client waits for the upstream. */
  readonly #silence: Phase;
  /** Runs while the upstream waits for the client. */
  readonly #unread: Phase;
  /** `opening`: before the first event. `draining`: the answer is read for the bill only. */
  #stage: "opening" | "open" | "draining" | "over" = "opening";
  #opened: PromiseWithResolvers<void> | undefined;
  #answer: StreamedAnswer | undefined;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  readonly #observed: ObservableBody = {};
  readonly #runForKey = keepKey();
  /** Steps read before the client pulled them; undefined marks the end of the answer. */
  readonly #ready: (Step | undefined)[] = [];
  /** Approximate memory of the steps read before the first event, in characters. */
  #openingSize = 0;
  #isReading = false;
  /** True after the last event of the answer. */
  #hasEnded = false;
  /** True if the client waits for data. */
  #isPulled = false;
  /** True if the response starts with a keep-alive because the answer is late. */
  #isLate = false;
  #isDisconnected = false;
  /** The part of a long step that was not sent yet. */
  #unsentText = "";
  /** Total time that data waited for the client, in milliseconds. */
  #heldUpMs = 0;
  /** Total time that the client waited for data, in milliseconds. */
  #waitedMs = 0;
  #ended: PromiseWithResolvers<void> | undefined;

  constructor(options: StreamLoopOptions) {
    this.#options = options;
    this.contentType = options.framing?.contentType;
    this.#timer = new PhaseTimer(options.timers);
    this.#silence = {
      ms: options.keepAliveMs - MAX_LATE_MS,
      expire: () => {
        // The rest of a long step comes within a few turns of the event loop, and nothing may come before it.
        if (this.#unsentText === "") this.#sendChunk(options.keepAlive);
      },
    };
    this.#unread = { ms: options.unreadMs, expire: () => this.#failUnread() };
  }

  /**
   * Reads an answer until its first event. Until then another target's answer can replace it.
   * @throws the error that came instead of a first event
   */
  open(answer: StreamedAnswer): Promise<void> {
    this.#answer = answer;
    this.#ready.length = 0;
    this.#openingSize = 0;
    this.#hasEnded = false;
    this.#opened = Promise.withResolvers();
    this.#read();
    return this.#opened.promise;
  }

  /**
   * Waits for the first event for at most the keep-alive interval. After that the response starts with a keep-alive,
   * and errors are sent in the stream.
   * @returns false if the answer is late
   * @throws the error of `opening` if it fails in time
   */
  async opensInTime(opening: Promise<void>): Promise<boolean> {
    const { timers, keepAliveMs } = this.#options;
    const late = Promise.withResolvers<typeof LATE>();
    const timer = timers.set(keepAliveMs - MAX_LATE_MS, () => late.resolve(LATE));
    try {
      if (await Promise.race([opening, late.promise]) !== LATE) return true;
    } finally {
      timer.stop();
    }
    this.#isLate = true;
    opening.catch((thrown) => this.#failUnanswered(thrown));
    return false;
  }

  body(): ReadableStream<Uint8Array> {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
        this.#timer.begin(this.#unread);
      },
      pull: () => this.#pull(),
      cancel: () => this.disconnect(),
    }, { highWaterMark: 0 });
    setBodyObservable(body, this.#observed);
    return body;
  }

  /** Handles a client that disconnects. Resolves when nothing more is read from the upstream. */
  async disconnect(): Promise<void> {
    this.#isDisconnected = true;
    this.#timer.stop();
    if (this.#stage === "opening") this.#options.request.drainOrCancel();
    else if (this.#stage === "open") this.#drainOrCancel();
    if (this.#stage !== "over") await (this.#ended = Promise.withResolvers()).promise;
    // Wait for a chunk that is being enqueued in this microtask.
    await undefined;
    this.#observed.listener?.ended();
  }

  #pull(): void {
    this.#heldUpMs += this.#timer.elapsedMs;
    this.#timer.begin(this.#silence);
    this.#isPulled = true;
    if (!this.#isLate) return this.#next();
    this.#isLate = false;
    this.#sendChunk(this.#options.keepAlive);
  }

  /** Sends the rest of a long step, else the first waiting step that has text, else reads on. */
  #next(): void {
    if (this.#unsentText !== "") {
      void this.#runForKey(yieldToEventLoop).then(() => {
        if (this.#stage !== "over" && !this.#isDisconnected) this.#sendText(this.#unsentText);
      });
      return;
    }
    if (this.#stage !== "open") return;
    // It is a loop because recursion could exceed the stack.
    while (this.#ready.length > 0) if (this.#send(this.#ready.shift())) return;
    if (!this.#isReading) this.#read();
  }

  #read(): void {
    this.#isReading = true;
    const behind = this.#answer?.meter.behind;
    if (behind !== undefined) void behind.then(() => this.#read(), this.#fail);
    else if (this.#hasEnded) this.#take(undefined);
    else this.#answer?.feed.read().then(this.#take, this.#failRead);
  }

  /** Translates, measures and meters one read. */
  readonly #take = (read: Step | ReplyEvent[] | undefined): void => {
    const { writer, target, meter } = this.#answer as StreamedAnswer;
    try {
      const last = (Array.isArray(read) ? read : read?.events)?.at(-1);
      if (last?.type === "error") last.error = this.#blameClient(last.error);
      this.#hasEnded ||= last?.type === "finish" || last?.type === "error";
      const step = Array.isArray(read) || read === undefined ? writer && writeStep(writer, read) : read;
      // A cancelled feed looks like an answer that broke off, which must not count against the target.
      if (step !== undefined && this.#stage !== "over") target.take(step.events);
      if (step?.frames.length === 0 && step.events.length === 0) return this.#skip();
      const metered = meter.take(step);
      if (metered instanceof Promise) metered.then(this.#deliver, this.#fail);
      else this.#deliver(metered);
    } catch (thrown) {
      this.#fail(thrown);
    }
  };

  /** Reads on after a step without frames and events, such as a comment of the upstream. */
  #skip(): void {
    this.#isReading = false;
    if (this.#stage !== "over" && (this.#stage !== "open" || this.#isPulled)) this.#read();
  }

  readonly #deliver = (step: Step | undefined): void => {
    this.#isReading = false;
    switch (this.#stage) {
      case "opening":
        return this.#deliverOpening(step);
      case "open":
        if (!this.#isPulled) this.#ready.push(step);
        // `pull` is called again only after something was enqueued.
        else if (!this.#send(step)) this.#next();
        return;
      case "draining":
        if (step === undefined) this.#stop();
        else this.#read();
    }
  };

  /** Handles a step before the first event. Until then another target can still replace the answer after an error. */
  #deliverOpening(step: Step | undefined): void {
    this.#ready.push(step);
    this.#openingSize += OVERHEAD_LENGTH;
    for (const { data } of step?.frames ?? []) this.#openingSize += OVERHEAD_LENGTH + data.length;
    let hasBegun = step === undefined || this.#openingSize > MAX_OPENING_LENGTH;
    for (const event of step?.events ?? []) {
      if (event.type === "error" && !hasBegun) return this.#fail(event.error);
      hasBegun ||= event.type !== "start";
    }
    if (!hasBegun) return this.#read();
    this.#stage = "open";
    this.#opened?.resolve();
    if (this.#isDisconnected) this.#drainOrCancel();
    else if (this.#isPulled) this.#next();
  }

  /** Sends a step, or closes the stream at the end of the answer. @returns false if the step has no text */
  #send(step: Step | undefined): boolean {
    if (step === undefined) {
      this.#close();
      return true;
    }
    try {
      const text = this.#format(step.frames);
      this.#answer?.meter.sent();
      if (text === "") return false;
      this.#sendText(text);
    } catch (thrown) {
      this.#answer?.meter.fail(toGatewayError(thrown));
      this.#stop();
      this.#controller?.error(thrown);
      this.#observed.listener?.ended();
    }
    return true;
  }

  /** Sends text, or the first part of a long text. */
  #sendText(text: string): void {
    const end = text.length <= MAX_CHUNK_LENGTH ? text.length : characterEnd(text, MAX_CHUNK_LENGTH);
    this.#unsentText = text.slice(end);
    this.#sendChunk(text.slice(0, end));
  }

  /** Sends text that the client waits for. All state is changed first, because `enqueue` may call `pull` synchronously. */
  #sendChunk(text: string): void {
    this.#isPulled = false;
    this.#waitedMs += this.#timer.elapsedMs;
    this.#timer.begin(this.#unread);
    this.#enqueue(text);
  }

  #enqueue(text: string): void {
    const bytes = utf8Bytes(text);
    this.#observed.listener?.sent(bytes.length);
    this.#controller?.enqueue(bytes);
  }

  readonly #failRead = (thrown: unknown): void => {
    if (this.#stage === "over") return;
    const error = thrown instanceof GatewayError ? this.#blameClient(thrown) : thrown;
    this.#answer?.target.broken(error);
    this.#fail(error);
  };

  /** Handles every failure of a stream. Before the first event, another target may still answer. */
  readonly #fail = (thrown: unknown): void => {
    this.#isReading = false;
    if (this.#stage === "over") return;
    if (this.#stage === "opening") {
      this.#answer?.feed.cancel();
      this.#opened?.reject(thrown);
      return;
    }
    const error = toGatewayError(thrown);
    const isReported = this.#answer?.meter.fail(error) === true;
    if (this.#stage === "draining") return this.#stop();
    this.#ready.push({ frames: isReported ? this.#errorFrames(error) : [], events: [] }, undefined);
    if (this.#isPulled) this.#next();
  };

  #errorFrames(error: GatewayError): Frame[] {
    const { feed, writer } = this.#answer ?? {};
    if (writer !== undefined) return writer.push({ type: "error", error });
    return feed !== undefined && "fail" in feed ? feed.fail(error) : this.#options.request.errorFrames(error);
  }

  /** Handles a failure of all targets after the response has begun with keep-alives. */
  #failUnanswered(thrown: unknown): void {
    const { request } = this.#options;
    if (this.#isDisconnected) {
      request.settleUnanswered();
      return this.#stop();
    }
    const text = this.#format(request.failUnanswered(toGatewayError(thrown)));
    this.#answer = undefined;
    this.#stage = "open";
    this.#ready.splice(0, Infinity, undefined);
    if (this.#isPulled) this.#sendText(text);
    else this.#unsentText = text;
  }

  /** Returns the error, or another one if the client caused it. */
  #blameClient(error: GatewayError): GatewayError {
    return blameClient(error, {
      totalMs: this.#answer?.totalMs ?? Infinity,
      heldUpMs: this.#heldUpMs + (this.#isPulled ? 0 : this.#timer.elapsedMs),
      waitedMs: this.#waitedMs + (this.#isPulled ? this.#timer.elapsedMs : 0),
    });
  }

  /** Cancels or drains an answer whose client has disconnected. There is none if all targets failed. */
  #drainOrCancel(): void {
    if (this.#answer === undefined) return this.#stop();
    const { meter } = this.#answer;
    const drains = this.#options.request.drainForBill(meter.facts);
    meter.disconnected(drains);
    if (!drains || this.#ready.includes(undefined)) return this.#stop();
    this.#stage = "draining";
    if (!this.#isReading) this.#read();
  }

  /** Fails a stream that the client does not read for too long. The client gets the error at its next read. */
  #failUnread(): void {
    const frames = this.#errorFrames(unreadError(this.#options.unreadMs));
    void this.disconnect();
    this.#enqueue(this.#unsentText + this.#format(frames) + (this.#options.framing?.end() ?? ""));
    this.#controller?.close();
  }

  #format(frames: readonly Frame[]): string {
    return this.#options.framing?.write(frames) ?? formatFrames(frames);
  }

  #close(): void {
    this.#stop();
    if (this.#options.framing !== undefined) this.#enqueue(this.#options.framing.end());
    this.#controller?.close();
    this.#observed.listener?.ended();
  }

  #stop(): void {
    this.#stage = "over";
    this.#timer.stop();
    this.#answer?.feed.cancel();
    this.#ended?.resolve();
  }
}
