/** A streamed answer on its way to the client, and its charge: what ends the answer waits until the charge is durable. */
import type { Event, FinishReason, Usage } from "../canonical/types.ts";
import { spliceMembers } from "../json_splice.ts";
import type { Afterwork } from "../metering/afterwork.ts";
import { formatUsd } from "../metering/money.ts";
import { RunningCount } from "../metering/running_count.ts";
import type { Codec, Frame } from "../protocols/codec.ts";
import type { FrameFeed, Step } from "../upstreams/upstream.ts";
import { type Counts, readTokens } from "./billed_tokens.ts";
import type { Meter } from "../metering/meter.ts";
import { LEFT } from "./metered.ts";

/** What a stream is charged by. */
export interface StreamCharge {
  meter: Meter;
  afterwork: Afterwork;
  codec: Codec;
  countInput: Counts["countInput"];
}

/** A feed under a meter, and what the meter must be told. */
export interface MeteredFeed {
  feed: FrameFeed;
  /** The client got this step. */
  sent(step: Step): void;
  /** The client has left. Where the answer is read to its end all the same, its end is what is charged. */
  left(drain: boolean): void;
}

/**
 * Charges what passes. A finished answer is charged by its usage; one whose client left, by what it got; one that breaks
 * off, nothing. The frame with the usage and what follows it are held back until the charge is entered, and tell the cost.
 */
export function meteredFeed(feed: FrameFeed, { meter, afterwork, codec, countInput }: StreamCharge): MeteredFeed {
  const count = new RunningCount();
  const countOutput = () => count.finish();
  /** What was read and not yet sent. */
  const unsent: Step[] = [];
  /** Counting that the answer has run far ahead of. */
  let behind: Promise<void> | undefined;
  let held: Frame[] = [];
  let input: Usage = {};
  let said = false;
  let got = false;
  let gone = false;

  function observe(events: readonly Event[]): void {
    for (const event of events) behind = count.push(event) ?? behind;
  }

  async function take({ frames, events }: Step): Promise<Step> {
    const step: Step = { frames, events };
    unsent.push(step);
    for (const event of events) {
      if (event.type === "start") input = event.usage ?? input;
      else if (!said) meter.first();
      // Before anything was said, another target may still answer.
      if (event.type === "error" && said) await meter.fail(200);
      if (event.type === "error") count.stop();
      if (event.type === "finish") return await finish(step, event);
      said ||= event.type !== "start";
    }
    return events.some(({ type }) => type === "error") ? released(step) : holdBack(step);
  }

  async function finish(step: Step, { usage, reason }: { usage: Usage; reason: FinishReason }): Promise<Step> {
    for (const { events } of unsent.splice(0)) observe(events);
    const charged = await readTokens(usage, { countInput, countOutput });
    count.stop();
    const cost = await meter.deliver({ status: 200, ending: gone ? "abandoned" : reason, ...charged });
    return released(step, `"${formatUsd(cost)}"`);
  }

  /** The step with what waited for it; the cost goes into the last frame that tells the usage. */
  function released(step: Step, cost?: string): Step {
    const frames = [...held, ...step.frames];
    held = [];
    const last = frames.findLastIndex((frame) => codec.tellsUsage(frame));
    return {
      ...step,
      frames: frames.map((frame, index) =>
        index === last && cost !== undefined
          ? { ...frame, data: spliceMembers(frame.data, { sluice_cost: cost }) }
          : frame
      ),
    };
  }

  /** From the frame with the usage on, nothing goes out before the answer is complete. */
  function holdBack(step: Step): Step {
    const from = held.length > 0 ? 0 : step.frames.findIndex((frame) => codec.tellsUsage(frame));
    if (from === -1) return step;
    held.push(...step.frames.slice(from));
    return { ...step, frames: step.frames.slice(0, from) };
  }

  async function abandon(): Promise<void> {
    if (!got) return await meter.fail(LEFT);
    const charged = await readTokens(input, { countInput, countOutput });
    await meter.deliver({ status: 200, ending: "abandoned", ...charged });
  }

  return {
    feed: {
      async read() {
        await behind;
        behind = undefined;
        const step = await feed.read();
        if (step !== undefined) return await take(step);
        // A feed that ends without an end has told the client so.
        count.stop();
        await meter.fail(200);
        return held.length > 0 ? released({ frames: [], events: [] }) : undefined;
      },
      fail(error) {
        count.stop();
        afterwork.add(meter.fail(200));
        return [...held.splice(0), ...feed.fail(error)];
      },
      cancel: () => feed.cancel(),
    },
    sent({ events }) {
      got = true;
      if (gone || unsent.length === 0) return;
      unsent.shift();
      observe(events);
    },
    left(drain) {
      gone = true;
      if (!drain) afterwork.add(abandon());
    },
  };
}
