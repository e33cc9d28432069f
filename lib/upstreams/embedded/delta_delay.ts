/** Delays between deltas, on request: a slow stream shows whether a proxy in front of the gateway buffers it. */
import { delay } from "../../abort.ts";
import type { Prompt } from "../../protocols/canonical/types.ts";

/** Longest delay before a delta, in milliseconds. */
const MAX_DELAY_MS = 100_000;
/** Longest total delay of one answer, in milliseconds. */
const MAX_TOTAL_MS = 150_000;

/** Delays between the deltas of one answer. */
export interface DeltaDelay {
  /** Waits before each delta except the first. Ends early when the signal is aborted. Never rejects. */
  wait(signal: AbortSignal): Promise<void>;
}

/** Reads the delay from a first line `pace:700ms` of the last user message; `undefined` without such a line. */
export function readDeltaDelay({ messages }: Prompt): DeltaDelay | undefined {
  const last = messages.findLast(({ role }) => role === "user")?.blocks.find((block) => block.type === "text");
  const requestedMs = last?.type === "text" ? /^pace:(\d{1,6})ms(?:\n|$)/.exec(last.text)?.[1] : undefined;
  if (requestedMs === undefined) return undefined;
  const pauseMs = Math.min(Number(requestedMs), MAX_DELAY_MS);
  let leftMs = MAX_TOTAL_MS;
  let first = true;
  return {
    async wait(signal) {
      const ms = first ? 0 : Math.min(pauseMs, leftMs);
      first = false;
      leftMs -= ms;
      if (ms > 0) await delay(ms, signal).catch(() => {});
    },
  };
}
