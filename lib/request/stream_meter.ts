/** Meters and charges a streamed answer. Its last frames are held back until the charge is durable. */
import type { FinishReason, Prompt, ReplyEvent, TokenUsage } from "../protocols/canonical/types.ts";
import { cutAnswerError, GatewayError, toGatewayError } from "../errors.ts";
import { spliceMembers } from "../json/mod.ts";
import type { BackgroundTasks } from "../billing/in_flight_requests.ts";
import type { Meter } from "../billing/meter.ts";
import { type Amount, formatUsd } from "../billing/money.ts";
import { type HostedCalls, hostedCallsOf } from "../billing/extras.ts";
import type { ReplyTokens } from "../billing/count_prompt.ts";
import { ReplyTokenCounter } from "../billing/reply_token_counter.ts";
import { type Codec, type Frame, isObjectFrame } from "../protocols/codec.ts";
import type { Step } from "../upstreams/upstream.ts";
import { type ChargedTokens, type EndedAnswer, readTokens, type TokenCounts } from "./settle_reply.ts";
import type { AnswerFacts } from "./client_disconnect.ts";
import type { OtherAnswers } from "./other_answers.ts";
import { CLIENT_DISCONNECTED, failDisconnected, reasonOf, SHUTDOWN } from "./request_meter.ts";

/** Maximum number of frames that are held back, so that a flood of frames cannot fill the memory. */
const MAX_HELD_FRAMES = 1_024;
/** Maximum number of characters of the frames that are held back. */
const MAX_HELD_LENGTH = 1_048_576;

/** Options of a stream meter. */
export interface StreamCharge {
  meter: Meter;
  backgroundTasks: BackgroundTasks;
  codec: Codec;
  countInput: TokenCounts["countInput"];
  prompt: Pick<Prompt, "messages" | "plain" | "extras" | "includeUsage">;
  /** Counts all answers but the first; absent if there is only one. */
  others?: OtherAnswers | undefined;
  request: {
    /** True if the client disconnected before the response. */
    readonly clientHasDisconnected: boolean;
    /** True if the process is ending before the request is done. */
    readonly isInterrupted: boolean;
  };
  /** Resolves when later requests that refer to the answer can find it; absent if there is nothing to wait for. */
  stored?: (() => Promise<void> | undefined) | undefined;
  /** Logs why an answer ended early. */
  noteFailure: (error: GatewayError) => void;
}

/**
 * Charges one stream. A finished answer is charged by its usage. An answer whose client disconnected is charged for the
 * output until then, or until the drained upstream failed. An answer that hits a limit of the gateway is charged for
 * the output before it. Any other incomplete answer is free. The usage frame and all later frames wait until the charge
 * is durable, and carry the cost.
 */
export class StreamMeter {
  readonly #charge: StreamCharge;
  readonly #count = new ReplyTokenCounter();
  /** Counts calls of hosted tools; undefined if none can run. */
  readonly #hostedCalls: HostedCalls | undefined;
  /** Events of steps that were read but not yet sent. */
  readonly #unsent: (readonly ReplyEvent[])[] = [];
  /** Token counting that is far behind the answer. */
  #behind: Promise<void> | undefined;
  /** Held frames: a frame with usage that may be the last one, and all later frames. */
  #held: Frame[] = [];
  #heldLength = 0;
  #latest: Frame | undefined;
  #input: TokenUsage = {};
  /** Facts about the stream for `isCountable`. */
  readonly facts: AnswerFacts = { reasoning: false, input: false };
  #hasBegun = false;
  /** True if the client received any part of the answer. */
  #wasSent = false;
  #isDisconnected = false;
  /** True if the client has disconnected and the rest of the answer is not read. */
  #isCancelled = false;
  /** True if the end of the answer, or an error in its place, was read. */
  #isComplete = false;
  /** The error that came instead of the first event; undefined if there was none. */
  #openingError: GatewayError | undefined;

  constructor(charge: StreamCharge) {
    this.#charge = charge;
    this.#hostedCalls = hostedCallsOf(charge.prompt);
  }

  /** Token counting that must end before the next read; undefined if there is none. */
  get behind(): Promise<void> | undefined {
    return this.#behind?.then(() => this.#behind = undefined);
  }

  /** Meters a step, or the end of the answer. @returns the step to send; a promise if it waits for the charge */
  take(step: Step | undefined): Step | undefined | Promise<Step | undefined> {
    if (this.#isCancelled) return undefined;
    if (step === undefined) {
      return this.#isComplete ? undefined : this.#endEarly(this.#openingError ?? cutAnswerError());
    }
    this.#charge.others?.push(step.frames);
    for (const event of step.events) {
      if (event.type === "start") {
        this.#input = event.usage ?? this.#input;
        this.facts.input = this.#input.prompt !== undefined && this.#input.counted === undefined;
      } else if (event.type === "finish") return this.#finish(step, event);
      else if (event.type === "error") return this.#takeError(step, event.error);
      else {
        if (!this.#hasBegun) {
          this.#charge.meter.entry.recordFirstOutput();
          this.#hasBegun = true;
        }
        if (event.type === "open" && event.block.type === "reasoning") this.facts.reasoning = true;
      }
    }
    return this.#holdBack(step);
  }

  /** Records that the client received the next step. */
  sent(): void {
    const events = this.#unsent.shift();
    if (this.#isDisconnected || events === undefined) return;
    for (const { type } of events) if (type !== "start") this.#wasSent = true;
    this.#observe(events);
  }

  /** Settles a stream that failed. @returns true if the client gets the error */
  fail(error: GatewayError): boolean {
    if (this.#isCancelled) return false;
    this.#charge.backgroundTasks.add(this.#endEarly(error));
    this.#unsent.push([]);
    this.#held = [];
    return true;
  }

  /** Settles a stream whose client disconnected. @param drain true if the answer is read and charged to its end */
  disconnected(drain: boolean): void {
    if (this.#isDisconnected) return;
    this.#isDisconnected = true;
    if (this.#isComplete) return;
    this.#isCancelled = !drain;
    const { backgroundTasks, request, meter } = this.#charge;
    if (request.isInterrupted) backgroundTasks.add(meter.fail(200, SHUTDOWN));
    else if (this.#isCancelled) backgroundTasks.add(this.#chargeSent());
    else for (const events of this.#unsent.splice(0)) this.#observe(events);
  }

  #observe(events: readonly ReplyEvent[]): void {
    for (const event of events) this.#behind = this.#count.push(event) ?? this.#behind;
    if (this.#hostedCalls !== undefined) { for (const event of events) this.#hostedCalls.push(event); }
  }

  /** Stores the events of a step until it is sent. While draining, everything that is read counts as sent. */
  #queue(events: readonly ReplyEvent[]): void {
    if (this.#isDisconnected) this.#observe(events);
    else this.#unsent.push(events);
  }

  #observeAll(step: Step): void {
    for (const events of [...this.#unsent.splice(0), step.events]) this.#observe(events);
  }

  /** Stops counting. The process waits for a count that is still running before it ends. */
  #stopCounting(): void {
    const counting = this.#count.stop();
    if (counting !== undefined) this.#charge.backgroundTasks.add(counting);
  }

  async #takeError(step: Step, error: GatewayError): Promise<Step> {
    if (this.#hasBegun && !this.#isDisconnected && error.fault === "oversized") return await this.#cutOff(step, error);
    // Before the first event, another target may still answer.
    if (this.#hasBegun) {
      this.#isComplete = true;
      await this.#endEarly(error);
    } else this.#openingError = error;
    this.#stopCounting();
    this.#queue(step.events);
    this.#held = [];
    return step;
  }

  /**
   * Charges an answer that hit a limit of the gateway. The upstream is not at fault, so the output so far is charged.
   */
  async #cutOff(step: Step, error: GatewayError): Promise<Step> {
    this.#isComplete = true;
    this.#observeAll(step);
    const charged = await this.#readTokens({ usage: this.#input });
    this.#stopCounting();
    this.#charge.noteFailure(error);
    await this.#charge.meter.deliver({ status: 200, ending: "length", ...charged });
    this.#held = [];
    return step;
  }

  /**
   * Settles an answer that ends early. It is charged if the client disconnected or read too slowly, and is free else.
   */
  async #endEarly(error: GatewayError): Promise<undefined> {
    if (this.#isDisconnected || error.kind === "too_slow") {
      await this.#chargeSent();
      return;
    }
    this.#stopCounting();
    this.#charge.noteFailure(error);
    await this.#charge.meter.fail(200, reasonOf(error));
  }

  /** Charges the output that the client received. */
  async #chargeSent(): Promise<void> {
    const { meter } = this.#charge;
    if (!this.#wasSent) return await failDisconnected(meter);
    await meter.deliver({
      status: 200,
      ending: "client_disconnected",
      ...await this.#readTokens({ usage: this.#input }),
    });
  }

  async #finish(step: Step, { usage, reason }: { usage: TokenUsage; reason: FinishReason }): Promise<Step> {
    this.#isComplete = true;
    this.#observeAll(step);
    const charged = await this.#readTokens({ usage, finish: reason });
    this.#stopCounting();
    const isDisconnected = this.#isDisconnected || this.#charge.request.clientHasDisconnected;
    const cost = await this.#charge.meter.deliver({
      status: isDisconnected && !this.#wasSent ? CLIENT_DISCONNECTED : 200,
      ending: isDisconnected ? "client_disconnected" : reason,
      ...charged,
    });
    const stored = this.#charge.stored?.();
    if (stored !== undefined) await stored;
    const frames = this.#withBill([...this.#held, ...step.frames], charged, cost);
    this.#held = [];
    return { ...step, frames };
  }

  /** Returns the tokens to charge. If counting fails, the request is settled without a charge. */
  async #readTokens(ended: EndedAnswer): Promise<ChargedTokens> {
    const { countInput, prompt, meter } = this.#charge;
    const counts = { countInput, prompt, countOutput: () => this.#countOutput() };
    try {
      return await readTokens({ ...ended, hostedCalls: this.#hostedCalls }, counts);
    } catch (error) {
      await meter.fail(200, reasonOf(toGatewayError(error)));
      throw error;
    }
  }

  async #countOutput(): Promise<ReplyTokens> {
    const { completion, reasoning } = await this.#count.finish();
    const others = await this.#charge.others?.finish();
    return { completion: completion + (others?.completion ?? 0), reasoning: reasoning + (others?.reasoning ?? 0) };
  }

  /** Writes the billed usage and its cost into the last usage frame, or into an added one that the client asked for. */
  #withBill(frames: Frame[], { tokens, source }: ChargedTokens, cost: Amount): Frame[] {
    const { codec, prompt } = this.#charge;
    const bill = { sluice_cost: `"${formatUsd(cost)}"` };
    for (let index = frames.length - 1; index >= 0; index--) {
      const frame = frames[index];
      if (frame === undefined || !codec.hasUsage(frame)) continue;
      const data = source === "upstream" ? frame.data : codec.withUsage(frame.data, tokens);
      return frames.with(index, { ...frame, data: spliceMembers(data, bill) });
    }
    const end = frames.findIndex((frame) => !isObjectFrame(frame));
    const template = frames.findLast(isObjectFrame) ?? this.#latest;
    // Usage is optional in some protocols.
    if (prompt.includeUsage !== true || codec.usageFrame === undefined || template === undefined || end < 0) {
      return frames;
    }
    const usage = codec.usageFrame(template, tokens);
    return frames.toSpliced(end, 0, { ...usage, data: spliceMembers(usage.data, bill) });
  }

  /**
   * Holds back the usage frame and all later frames until the answer is complete. If more content follows, they are
   * released, because some hosts report usage with every event.
   */
  #holdBack({ frames, events, contentFrames = 0 }: Step): Step {
    this.#queue(events);
    this.#latest = frames.findLast(isObjectFrame) ?? this.#latest;
    // Most steps have no usage, so their frames are not inspected.
    if (this.#held.length === 0 && contentFrames === frames.length) return { frames, events };
    const released = contentFrames > 0 ? this.#release(this.#held.length) : [];
    const first = frames.findIndex((frame, index) => index >= contentFrames && this.#charge.codec.hasUsage(frame));
    const usageAt = first === -1 ? frames.length : first;
    const from = this.#held.length > 0 ? 0 : usageAt;
    for (const frame of frames.slice(from)) {
      this.#held.push(frame);
      this.#heldLength += frame.data.length;
    }
    return { frames: [...released, ...frames.slice(0, from), ...this.#releaseExcess()], events };
  }

  /**
   * If too much is held back, releases all frames before the last frame with usage.
   * @throws {GatewayError} `upstream` if the remaining frames are still too much
   */
  #releaseExcess(): Frame[] {
    if (!this.#holdsTooMuch) return [];
    const frames = this.#release(this.#held.findLastIndex((frame) => this.#charge.codec.hasUsage(frame)));
    if (!this.#holdsTooMuch) return frames;
    throw new GatewayError("upstream", "Cannot read the upstream's stream: too much data follows its usage");
  }

  get #holdsTooMuch(): boolean {
    return this.#held.length > MAX_HELD_FRAMES || this.#heldLength > MAX_HELD_LENGTH;
  }

  #release(count: number): Frame[] {
    const frames = this.#held.splice(0, count);
    for (const { data } of frames) this.#heldLength -= data.length;
    return frames;
  }
}
