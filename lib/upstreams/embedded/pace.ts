/** A slow answer on demand: what stands between a gateway and its clients is only seen while a stream takes its time. */
import type { Prompt } from "../../protocols/canonical/types.ts";

/** Longest wait before a piece, and longest of all waits of one answer, in milliseconds. */
const MOST_MS = 100_000;
const MOST_IN_ALL_MS = 150_000;

/** Longest time that a timer can take, in milliseconds. */
const LONGEST_MS = 2 ** 31 - 1;

/** Waits between the pieces of one answer. */
export interface Pace {
  /** Waits before a piece, but for the first one. Ends early when the signal is aborted. */
  wait(signal: AbortSignal): Promise<void>;
}

/**
 * The pace that the last message asks for with a first line `pace:700ms`; `undefined` where it asks for none.
 */
export function readPace({ messages }: Prompt): Pace | undefined {
  const last = messages.findLast(({ role }) => role === "user")?.blocks.find((block) => block.type === "text");
  const typed = last?.type === "text" ? /^pace:(\d{1,6})ms(?:\n|$)/.exec(last.text)?.[1] : undefined;
  if (typed === undefined) return undefined;
  const pauseMs = Math.min(Number(typed), MOST_MS);
  let leftMs = MOST_IN_ALL_MS;
  let first = true;
  return {
    async wait(signal) {
      const ms = first ? 0 : Math.min(pauseMs, leftMs);
      first = false;
      leftMs -= ms;
      if (ms > 0) await pause(ms, signal);
    },
  };
}

/** Resolves after a time, in milliseconds, and as soon as the signal is aborted. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, Math.max(0, Math.min(ms, LONGEST_MS)));
    signal.addEventListener("abort", end);
  });
}
