/** A streamed answer on its way, and what it tells of its target: how fast it is, and whether it breaks off. */
import type { ReplyEvent } from "../protocols/canonical/types.ts";
import type { FrameFeed, Step } from "../upstreams/upstream.ts";

/** Who is told of an answer. */
export interface Measuring {
  /** Milliseconds that only grow. */
  monotonic: () => number;
  /** The first event is there. */
  began(): void;
  /** The answer is complete: its speed, where it is long enough to tell. */
  ended(tokensPerSecond: number | undefined): void;
  /** It broke off after its first event. */
  broke(error: unknown): void;
  /** The error that names who is to blame where an answer breaks off with this one; absent: its target always is. */
  blame?: (error: unknown) => unknown;
}

/** Shorter answers say nothing about speed. */
const LEAST_TOKENS = 16;

/** The same feed, measured. What fails before the first event is told to nobody: it may be tried elsewhere. */
export function measuredFeed(
  feed: FrameFeed,
  { monotonic, began, ended, broke, blame = (error) => error }: Measuring,
): FrameFeed {
  let begun: number | undefined;

  function observe(event: ReplyEvent): void {
    if (event.type === "error") {
      if (begun !== undefined) broke(event.error);
    } else if (event.type !== "start" && begun === undefined) {
      begun = monotonic();
      began();
    }
    if (event.type === "finish") ended(speedOf(event.usage.completion));
  }

  function speedOf(tokens = 0): number | undefined {
    const ms = begun === undefined ? 0 : monotonic() - begun;
    return tokens < LEAST_TOKENS || ms <= 0 ? undefined : tokens * 1_000 / ms;
  }

  function pass(step: Step | undefined): Step | undefined {
    if (step !== undefined) {
      for (const event of step.events) observe(event);
    }
    return step;
  }

  function fail(thrown: unknown): never {
    const error = blame(thrown);
    if (begun !== undefined) broke(error);
    throw error;
  }

  return {
    read: () => feed.read().then(pass, fail),
    fail: (error) => feed.fail(error),
    cancel: () => feed.cancel(),
  };
}
