/** A streamed answer on its way to the client, and its charge: what ends the answer waits until the charge is durable. */
import type { FinishReason, ReplyEvent, TokenUsage } from "../protocols/canonical/types.ts";
import type { GatewayError } from "../errors.ts";
import { spliceMembers } from "../json/mod.ts";
import type { Afterwork } from "../billing/afterwork.ts";
import type { Meter } from "../billing/meter.ts";
import { type Amount, formatUsd } from "../billing/money.ts";
import type { HostedCalls } from "../billing/extras.ts";
import { RunningCount } from "../billing/running_count.ts";
import type { Codec, Frame } from "../protocols/codec.ts";
import type { FrameFeed, Step } from "../upstreams/upstream.ts";
import { type Charged, type Counts, type Ended, readTokens } from "./billed_tokens.ts";
import type { Shown } from "./countable.ts";
import { LEFT } from "./metered.ts";

/** What a stream is charged by. */
export interface StreamCharge {
  meter: Meter;
  afterwork: Afterwork;
  codec: Codec;
  countInput: Counts["countInput"];
  isEstimate: Counts["isEstimate"];
  /** Counts calls of hosted tools; absent: none can run. */
  hostedCalls?: HostedCalls | undefined;
  /** True where the client wants to be told the usage although not every stream of its protocol does. */
  wantsUsage: boolean;
  /** Whether the client has left, for as long as there is no response that it could leave. */
  hasLeft: () => boolean;
  /** Given up where the gateway ends the stream. */
  interrupted: Pick<AbortSignal, "aborted">;
  /** Told why an answer breaks off. */
  failed: (error: GatewayError) => void;
}

/** A feed under a meter, and what the meter must be told. */
export interface MeteredFeed {
  feed: FrameFeed;
  /** The client got the next step that was read. */
  sent(): void;
  /** The client has left. Where the answer is read to its end all the same, its end is what is charged. */
  left(drain: boolean): void;
  /** What has come of the answer. */
  readonly shown: Readonly<Shown>;
}

/**
 * Charges what passes. A finished answer is charged by its usage; one that its client left, by what was produced until
 * then, or until it broke off later; one that reaches a limit of the gateway's, by what came before it; one that breaks
 * off otherwise, nothing. The frame with the usage and what follows it are held back until the charge is entered, and
 * tell the cost.
 */
export function meteredFeed(
  feed: FrameFeed,
  { meter, afterwork, codec, countInput, isEstimate, hostedCalls, wantsUsage, hasLeft, interrupted, failed }:
    StreamCharge,
): MeteredFeed {
  const count = new RunningCount();
  const countOutput = () => count.finish();
  /** What the steps say that were read and not yet sent. */
  const unsent: (readonly ReplyEvent[])[] = [];
  /** Counting that the answer has run far ahead of. */
  let behind: Promise<void> | undefined;
  /** The frame that may be the last with a usage, and what came after it. */
  let held: Frame[] = [];
  /** The latest frame that is no mark. */
  let latest: Frame | undefined;
  let input: TokenUsage = {};
  const shown: Shown = { reasoning: false, input: false };
  let said = false;
  /** Whether the client has got something of the answer. */
  let got = false;
  let gone = false;
  /** Whether nothing more is read, as the client has gone. */
  let abandoned = false;
  let complete = false;

  /** What is being counted at this moment is nobody's any more, but the end of the process waits for it. */
  function stopCounting(): void {
    const counting = count.stop();
    if (counting !== undefined) afterwork.add(counting);
  }

  function observe(events: readonly ReplyEvent[]): void {
    for (const event of events) behind = count.push(event) ?? behind;
    if (hostedCalls !== undefined) { for (const event of events) hostedCalls.push(event); }
  }

  /** What is read for nobody counts as sent. */
  function queue(events: readonly ReplyEvent[]): void {
    if (gone) observe(events);
    else unsent.push(events);
  }

  /** Only what ends the answer takes time. */
  function take(step: Step | undefined): Step | undefined | Promise<Step | undefined> {
    // Nobody is there to tell, and what was sent is charged already.
    if (abandoned) return undefined;
    if (step === undefined) return endWithout();
    for (const event of step.events) {
      if (event.type === "start") begin(event.usage ?? input);
      else if (event.type === "finish") return finish(step, event);
      else if (event.type === "error") return breakOff(step, event.error);
      else {
        if (!said) {
          meter.first();
          said = true;
        }
        if (event.type === "open" && event.block.type === "reasoning") shown.reasoning = true;
      }
    }
    return holdBack(step);
  }

  function begin(usage: TokenUsage): void {
    input = usage;
    shown.input = usage.prompt !== undefined && usage.counted === undefined;
  }

  async function breakOff(step: Step, error: GatewayError): Promise<Step> {
    if (said && !gone && error.fault === "oversized") return await cutOff(step, error);
    // Before anything was said, another target may still answer.
    if (said) await endEarly(error);
    stopCounting();
    return broken(step);
  }

  /** The upstream did nothing wrong: all of the answer until here is paid for. */
  async function cutOff(step: Step, error: GatewayError): Promise<Step> {
    complete = true;
    for (const events of [...unsent.splice(0), step.events]) observe(events);
    const charged = await read({ usage: input });
    stopCounting();
    failed(error);
    await meter.deliver({ status: 200, ending: "length", ...charged });
    held = [];
    return step;
  }

  /** A feed that ends without an end has told the client so. */
  async function endWithout(): Promise<undefined> {
    await endEarly();
  }

  /** What ends because of the client is charged: it had left by then, or has read too slowly. */
  async function endEarly(error?: GatewayError): Promise<void> {
    if (gone || error?.kind === "too_slow") return await abandon();
    stopCounting();
    if (error !== undefined) failed(error);
    await meter.fail(200);
  }

  async function finish(step: Step, { usage, reason }: { usage: TokenUsage; reason: FinishReason }): Promise<Step> {
    complete = true;
    for (const events of [...unsent.splice(0), step.events]) observe(events);
    const charged = await read({ usage, finish: reason });
    stopCounting();
    const absent = gone || hasLeft();
    const cost = await meter.deliver({
      status: absent && !got ? LEFT : 200,
      ending: absent ? "abandoned" : reason,
      ...charged,
    });
    const frames = withUsage([...held, ...step.frames], charged);
    held = [];
    return { ...step, frames: withCost(frames, cost) };
  }

  /** What cannot be counted cannot be charged. */
  async function read(ended: Ended): Promise<Charged> {
    try {
      return await readTokens({ ...ended, hostedCalls }, { countInput, isEstimate, countOutput });
    } catch (error) {
      await meter.fail(200);
      throw error;
    }
  }

  /** The client is told what is billed, also where that is not what the upstream told. */
  function withUsage(frames: Frame[], { tokens, source }: Charged): Frame[] {
    const last = frames.findLastIndex((frame) => codec.tellsUsage(frame));
    if (last >= 0) {
      if (source === "upstream") return frames;
      return frames.map((frame, index) =>
        index === last ? { ...frame, data: codec.withUsage(frame.data, tokens) } : frame
      );
    }
    const end = frames.findIndex((frame) => !isObject(frame));
    const like = frames.findLast(isObject) ?? latest;
    if (!wantsUsage || codec.usageFrame === undefined || like === undefined || end < 0) return frames;
    return frames.toSpliced(end, 0, codec.usageFrame(like, tokens));
  }

  /** The cost goes into the last frame that tells the usage. */
  function withCost(frames: Frame[], cost: Amount): Frame[] {
    const last = frames.findLastIndex((frame) => codec.tellsUsage(frame));
    const sluice_cost = `"${formatUsd(cost)}"`;
    return frames.map((frame, index) =>
      index === last ? { ...frame, data: spliceMembers(frame.data, { sluice_cost }) } : frame
    );
  }

  /** An answer that breaks off has no usage: what was held back is of no use to anyone. */
  function broken(step: Step): Step {
    queue(step.events);
    held = [];
    return step;
  }

  /**
   * From the frame with the usage on, nothing goes out before the answer is complete. Where the answer goes on, that was
   * not the last one: some tell a usage with everything that they say.
   */
  function holdBack({ frames, events, spoken = 0 }: Step): Step {
    queue(events);
    latest = frames.findLast(isObject) ?? latest;
    // The usual step, which says something and nothing else, needs no look at its frames.
    if (held.length === 0 && spoken === frames.length) return { frames, events };
    const passed = spoken > 0 ? held.splice(0) : [];
    const tells = frames.findIndex((frame, index) => index >= spoken && codec.tellsUsage(frame));
    const from = held.length > 0 ? 0 : tells === -1 ? frames.length : tells;
    held.push(...frames.slice(from));
    return { frames: [...passed, ...frames.slice(0, from)], events };
  }

  async function readBehind(counted: Promise<void>): Promise<Step | undefined> {
    await counted;
    behind = undefined;
    return await take(await feed.read());
  }

  async function abandon(): Promise<void> {
    if (!got) return await meter.fail(LEFT);
    await meter.deliver({ status: 200, ending: "abandoned", ...await read({ usage: input }) });
  }

  return {
    feed: {
      read: () => behind === undefined ? feed.read().then(take) : readBehind(behind),
      fail(error) {
        if (abandoned) return [];
        afterwork.add(endEarly(error));
        return broken({ frames: feed.fail(error), events: [] }).frames;
      },
      cancel: () => feed.cancel(),
    },
    sent() {
      const events = unsent.shift();
      if (gone || events === undefined) return;
      got ||= events.some(({ type }) => type !== "start");
      observe(events);
    },
    left(drain) {
      if (gone) return;
      gone = true;
      // What is complete is being charged.
      if (complete) return;
      abandoned = !drain;
      // The gateway itself cuts the stream: that is nothing to pay for.
      if (interrupted.aborted) afterwork.add(meter.fail(200));
      else if (abandoned) afterwork.add(abandon());
      else for (const events of unsent.splice(0)) observe(events);
    },
    shown,
  };
}

/** False for a mark. Upstreams may write space before an object, which is relayed as it came. */
function isObject({ data }: Frame): boolean {
  return data.startsWith("{") || /^[ \t\r\n]*\{/.test(data);
}
