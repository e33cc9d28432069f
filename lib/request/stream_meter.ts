/** The charge of a streamed answer: what ends the answer waits until its charge is durable. */
import type { FinishReason, ReplyEvent, TokenUsage } from "../protocols/canonical/types.ts";
import type { GatewayError } from "../errors.ts";
import { spliceMembers } from "../json/mod.ts";
import type { BackgroundTasks } from "../billing/background_tasks.ts";
import type { Meter } from "../billing/meter.ts";
import { type Amount, formatUsd } from "../billing/money.ts";
import type { HostedCalls } from "../billing/extras.ts";
import { ReplyTokenCounter } from "../billing/reply_token_counter.ts";
import type { Codec, Frame } from "../protocols/codec.ts";
import type { Step } from "../upstreams/upstream.ts";
import { type Charged, type Counts, type Ended, readTokens } from "./billed_tokens.ts";
import type { Shown } from "./countable.ts";
import { CLIENT_LEFT } from "./request_meter.ts";

/** What a stream is charged by. */
export interface StreamCharge {
  meter: Meter;
  backgroundTasks: BackgroundTasks;
  codec: Codec;
  countInput: Counts["countInput"];
  isEstimate: Counts["isEstimate"];
  /** Counts calls of hosted tools; absent: none can run. */
  hostedCalls?: HostedCalls | undefined;
  /** True where the client asked for a usage that not every stream of its protocol has. */
  wantsUsage: boolean;
  /** Whether the client has left before there was a response. */
  hasLeft: () => boolean;
  /** Whether the gateway itself ends the stream. */
  isInterrupted: () => boolean;
  /** Notes in the log why an answer breaks off. */
  noteFailure: (error: GatewayError) => void;
}

/**
 * Charges the steps of one stream. A finished answer is charged by its usage; one that its client left, by what was
 * produced until then, or until it broke off later; one that reaches a limit of the gateway's, by what came before it;
 * one that breaks off otherwise, nothing. The frame with the usage and what follows it are held back until the charge is
 * durable, and carry the cost.
 */
export class StreamMeter {
  readonly #charge: StreamCharge;
  readonly #count = new ReplyTokenCounter();
  /** Events of the steps that were read and not yet sent. */
  readonly #unsent: (readonly ReplyEvent[])[] = [];
  /** Counting that the answer has run far ahead of. */
  #behind: Promise<void> | undefined;
  /** The frame that may be the last with a usage, and what came after it. */
  #held: Frame[] = [];
  /** The latest frame that is an object. */
  #latest: Frame | undefined;
  #input: TokenUsage = {};
  readonly #shown: Shown = { reasoning: false, input: false };
  #hasBegun = false;
  /** Whether the client has received something of the answer. */
  #wasSent = false;
  #clientLeft = false;
  /** The client has left, and the rest of the answer is not read. */
  #isAbandoned = false;
  #isComplete = false;

  constructor(charge: StreamCharge) {
    this.#charge = charge;
  }

  /** The parts of the answer that bear on whether it can be counted. */
  get shown(): Readonly<Shown> {
    return this.#shown;
  }

  /** Counting that must end before the next step is read; absent: none. */
  get behind(): Promise<void> | undefined {
    return this.#behind?.then(() => this.#behind = undefined);
  }

  /** The step as it may be sent; a promise where its end waits for the charge. */
  take(step: Step | undefined): Step | undefined | Promise<Step | undefined> {
    if (this.#isAbandoned) return undefined;
    if (step === undefined) return this.#isComplete ? undefined : this.#endEarly();
    for (const event of step.events) {
      if (event.type === "start") this.#begin(event.usage ?? this.#input);
      else if (event.type === "finish") return this.#finish(step, event);
      else if (event.type === "error") return this.#breakOff(step, event.error);
      else {
        if (!this.#hasBegun) {
          this.#charge.meter.first();
          this.#hasBegun = true;
        }
        if (event.type === "open" && event.block.type === "reasoning") this.#shown.reasoning = true;
      }
    }
    return this.#holdBack(step);
  }

  /** The client received the next step that was read. */
  sent(): void {
    const events = this.#unsent.shift();
    if (this.#clientLeft || events === undefined) return;
    this.#wasSent ||= events.some(({ type }) => type !== "start");
    this.#observe(events);
  }

  /** The stream broke off with an error. @returns whether the client is told */
  fail(error: GatewayError): boolean {
    if (this.#isAbandoned) return false;
    this.#charge.backgroundTasks.add(this.#endEarly(error));
    this.#unsent.push([]);
    this.#held = [];
    return true;
  }

  /** The client has left. `drain`: the answer is read and charged to its end. */
  left(drain: boolean): void {
    if (this.#clientLeft) return;
    this.#clientLeft = true;
    if (this.#isComplete) return;
    this.#isAbandoned = !drain;
    const { backgroundTasks, isInterrupted, meter } = this.#charge;
    if (isInterrupted()) backgroundTasks.add(meter.fail(200));
    else if (this.#isAbandoned) backgroundTasks.add(this.#abandon());
    else for (const events of this.#unsent.splice(0)) this.#observe(events);
  }

  #begin(usage: TokenUsage): void {
    this.#input = usage;
    this.#shown.input = usage.prompt !== undefined && usage.counted === undefined;
  }

  #observe(events: readonly ReplyEvent[]): void {
    const { hostedCalls } = this.#charge;
    for (const event of events) this.#behind = this.#count.push(event) ?? this.#behind;
    if (hostedCalls !== undefined) { for (const event of events) hostedCalls.push(event); }
  }

  /** After the client has left, all that is read counts as sent. */
  #queue(events: readonly ReplyEvent[]): void {
    if (this.#clientLeft) this.#observe(events);
    else this.#unsent.push(events);
  }

  #observeAll(step: Step): void {
    for (const events of [...this.#unsent.splice(0), step.events]) this.#observe(events);
  }

  /** Counting under way is of no more use, but the end of the process waits for it. */
  #stopCounting(): void {
    const counting = this.#count.stop();
    if (counting !== undefined) this.#charge.backgroundTasks.add(counting);
  }

  async #breakOff(step: Step, error: GatewayError): Promise<Step> {
    if (this.#hasBegun && !this.#clientLeft && error.fault === "oversized") return await this.#cutOff(step, error);
    // Before the answer has begun, another target may still give one.
    if (this.#hasBegun) await this.#endEarly(error);
    this.#stopCounting();
    this.#queue(step.events);
    this.#held = [];
    return step;
  }

  /** The upstream is not at fault: all of the answer until here is paid for. */
  async #cutOff(step: Step, error: GatewayError): Promise<Step> {
    this.#isComplete = true;
    this.#observeAll(step);
    const charged = await this.#read({ usage: this.#input });
    this.#stopCounting();
    this.#charge.noteFailure(error);
    await this.#charge.meter.deliver({ status: 200, ending: "length", ...charged });
    this.#held = [];
    return step;
  }

  /** An answer that ends because of its client is charged: the client had left by then, or has read too slowly. */
  async #endEarly(error?: GatewayError): Promise<undefined> {
    if (this.#clientLeft || error?.kind === "too_slow") {
      await this.#abandon();
      return;
    }
    this.#stopCounting();
    if (error !== undefined) this.#charge.noteFailure(error);
    await this.#charge.meter.fail(200);
  }

  async #abandon(): Promise<void> {
    const { meter } = this.#charge;
    if (!this.#wasSent) return await meter.fail(CLIENT_LEFT);
    await meter.deliver({ status: 200, ending: "abandoned", ...await this.#read({ usage: this.#input }) });
  }

  async #finish(step: Step, { usage, reason }: { usage: TokenUsage; reason: FinishReason }): Promise<Step> {
    this.#isComplete = true;
    this.#observeAll(step);
    const charged = await this.#read({ usage, finish: reason });
    this.#stopCounting();
    const absent = this.#clientLeft || this.#charge.hasLeft();
    const cost = await this.#charge.meter.deliver({
      status: absent && !this.#wasSent ? CLIENT_LEFT : 200,
      ending: absent ? "abandoned" : reason,
      ...charged,
    });
    const frames = this.#withUsage([...this.#held, ...step.frames], charged);
    this.#held = [];
    return { ...step, frames: this.#withCost(frames, cost) };
  }

  /** An answer that cannot be counted cannot be charged. */
  async #read(ended: Ended): Promise<Charged> {
    const { hostedCalls, countInput, isEstimate, meter } = this.#charge;
    try {
      return await readTokens({ ...ended, hostedCalls }, {
        countInput,
        isEstimate,
        countOutput: () => this.#count.finish(),
      });
    } catch (error) {
      await meter.fail(200);
      throw error;
    }
  }

  /** The usage in the answer is the billed one, whatever the upstream reported. */
  #withUsage(frames: Frame[], { tokens, source }: Charged): Frame[] {
    const { codec, wantsUsage } = this.#charge;
    const last = frames.findLastIndex((frame) => codec.tellsUsage(frame));
    if (last >= 0) {
      if (source === "upstream") return frames;
      return frames.map((frame, index) =>
        index === last ? { ...frame, data: codec.withUsage(frame.data, tokens) } : frame
      );
    }
    const end = frames.findIndex((frame) => !isObject(frame));
    const like = frames.findLast(isObject) ?? this.#latest;
    if (!wantsUsage || codec.usageFrame === undefined || like === undefined || end < 0) return frames;
    return frames.toSpliced(end, 0, codec.usageFrame(like, tokens));
  }

  /** The cost goes into the last frame with a usage. */
  #withCost(frames: Frame[], cost: Amount): Frame[] {
    const last = frames.findLastIndex((frame) => this.#charge.codec.tellsUsage(frame));
    const sluice_cost = `"${formatUsd(cost)}"`;
    return frames.map((frame, index) =>
      index === last ? { ...frame, data: spliceMembers(frame.data, { sluice_cost }) } : frame
    );
  }

  /**
   * From the frame with the usage on, nothing goes out before the answer is complete. Where the answer goes on, that was
   * not the last usage: some hosts report one with every event.
   */
  #holdBack({ frames, events, spoken = 0 }: Step): Step {
    this.#queue(events);
    this.#latest = frames.findLast(isObject) ?? this.#latest;
    // The usual step has text and no usage: its frames need no look.
    if (this.#held.length === 0 && spoken === frames.length) return { frames, events };
    const passed = spoken > 0 ? this.#held.splice(0) : [];
    const first = frames.findIndex((frame, index) => index >= spoken && this.#charge.codec.tellsUsage(frame));
    const from = this.#held.length > 0 ? 0 : first === -1 ? frames.length : first;
    this.#held.push(...frames.slice(from));
    return { frames: [...passed, ...frames.slice(0, from)], events };
  }
}

/** False for a mark such as `[DONE]`. Upstreams may write space before an object, which is relayed. */
function isObject({ data }: Frame): boolean {
  return data.startsWith("{") || /^[ \t\r\n]*\{/.test(data);
}
