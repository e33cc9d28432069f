/** Waiting, for as long as somebody wants it. */
import type { StopSignal } from "../stop.ts";

/** Resolves after a time, in milliseconds. @throws the signal's reason, where that is aborted before */
export function pause(ms: number, signal: StopSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const listener = {
      handleEvent() {
        clearTimeout(timer);
        signal.removeEventListener("abort", listener);
        reject(signal.reason);
      },
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", listener);
      resolve();
    }, ms);
    if (signal.aborted) listener.handleEvent();
    else signal.addEventListener("abort", listener);
  });
}
