/** Opens the stream of a text request, and makes an answer of a target ready for it. */
import { hostedCallsOf } from "../billing/extras.ts";
import { isEstimated } from "../billing/prompt_parts.ts";
import type { TargetAnswer } from "./send_to_targets.ts";
import type { RequestState } from "./state.ts";
import { type StreamedAnswer, StreamLoop } from "./stream_loop.ts";
import { StreamMeter } from "./stream_meter.ts";
import { targetMs } from "./targets.ts";
import type { Machine, ReplyEvent } from "../protocols/canonical/types.ts";
import type { GatewayError } from "../errors.ts";
import type { Frame } from "../protocols/codec.ts";
import type { Step } from "../upstreams/upstream.ts";
import type { Gateway } from "../gateway.ts";
import type { Permit } from "../routing/health.ts";
import { classifyFailure } from "../routing/classify_failure.ts";

/** Creates the stream loop of a request. `StreamLoop.open` gives it an answer. */
export function openStream(state: RequestState): StreamLoop {
  const { codec, context: { gateway: { config }, timers } } = state;
  return new StreamLoop({
    request: state,
    timers,
    keepAlive: codec.keepAlive,
    framing: codec.framing?.(),
    keepAliveMs: config.keep_alive_seconds * 1000,
    unreadMs: config.limits.answer_unread_ms,
  });
}

/** Combines an answer with its writer, its meter, and the measurement of its target. */
export function streamedAnswer(
  { answer, admitted: { prompt, client }, attempt, begunAt, countInput }: TargetAnswer,
  state: RequestState,
): StreamedAnswer {
  if (answer.type === "text") throw new TypeError("Cannot give a whole answer to a client that asked for a stream");
  const { codec, context: { gateway, record, keeper }, meter } = state;
  const { health, monotonic, backgroundTasks, observer, config } = gateway;
  const shared = {
    totalMs: targetMs(attempt, config),
    target: new TargetMeasurement({
      health,
      monotonic,
      pass: attempt.permit,
      begunAt,
      isAborted: () => state.signal.aborted,
    }),
    meter: new StreamMeter({
      meter,
      backgroundTasks,
      codec,
      countInput,
      isEstimate: () => isEstimated(prompt),
      hostedCalls: hostedCallsOf(prompt),
      wantsUsage: prompt.includeUsage === true,
      hasLeft: () => state.clientHasLeft,
      isInterrupted: () => state.isInterrupted,
      kept: keeper?.written,
      noteFailure: (error) => observer.failed(record, error),
    }),
  };
  return answer.type === "frames"
    ? { feed: answer.feed, ...shared }
    : { feed: answer.feed, writer: new EventWriter(codec.writer(client.echo)), ...shared };
}

/** Writes the steps of one answer. */
export class EventWriter {
  readonly #writer: Machine<ReplyEvent, Frame>;
  /** The answer has ended. */
  isOver = false;

  constructor(writer: Machine<ReplyEvent, Frame>) {
    this.#writer = writer;
  }

  /** The next step; `events` absent: the answer has no more. @returns absent after the last */
  write(events: ReplyEvent[] | undefined): Step | undefined {
    if (this.isOver) return undefined;
    const frames: Frame[] = [];
    let speaks = false;
    this.isOver = events === undefined;
    for (const event of events ?? []) {
      if (event.type === "finish" || event.type === "error") this.isOver = true;
      if (event.type !== "start") speaks = true;
      for (const frame of this.#writer.push(event)) frames.push(frame);
    }
    if (this.isOver) frames.push(...this.#writer.end());
    // Until its end, an answer is written as it comes.
    return { frames, events: events ?? [], spoken: speaks ? frames.length : 0 };
  }

  /** Frames that end the answer with an error. */
  fail(error: GatewayError): Frame[] {
    return [...this.#writer.push({ type: "error", error }), ...this.#writer.end()];
  }
}

/** Shorter answers say nothing about speed. */
const LEAST_TOKENS = 16;

/** A stream and its target. */
export interface MeasuredStream extends Pick<Gateway, "health" | "monotonic"> {
  pass: Permit;
  /** When the attempt began, by `monotonic`. */
  begunAt: number;
  /** True if the request was given up: the target is not to blame then. */
  isAborted: () => boolean;
}

/** Reports one stream to the health of its target. A failure before the first event is left to the retry. */
export class TargetMeasurement {
  readonly #stream: MeasuredStream;
  #firstAt: number | undefined;

  constructor(stream: MeasuredStream) {
    this.#stream = stream;
  }

  /** The next events of the answer. */
  take(events: readonly ReplyEvent[]): void {
    for (const event of events) {
      if (event.type === "error") this.broken(event.error);
      else if (event.type !== "start" && this.#firstAt === undefined) this.#begin();
      if (event.type === "finish") this.#end(event.usage.completion);
    }
  }

  /** The answer was cut short. */
  broken(error: unknown): void {
    const { health, pass, isAborted } = this.#stream;
    if (this.#firstAt !== undefined && !isAborted()) health.report(pass, classifyFailure(error).outcome);
  }

  #begin(): void {
    const { health, monotonic, pass, begunAt } = this.#stream;
    this.#firstAt = monotonic();
    health.recordSpeed(pass.target, { firstMs: Math.round(this.#firstAt - begunAt) });
  }

  #end(tokens = 0): void {
    const { health, monotonic, pass } = this.#stream;
    const ms = this.#firstAt === undefined ? 0 : monotonic() - this.#firstAt;
    if (tokens >= LEAST_TOKENS && ms > 0) health.recordSpeed(pass.target, { tokensPerSecond: tokens * 1_000 / ms });
  }
}
