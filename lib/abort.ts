/** Waits that end early: when an `AbortSignal` is aborted, or after a time. */
import { type StartTimer, startTimer } from "./start_timer.ts";

/**
 * Waits for a promise, or until the signal is aborted, whichever is first.
 * @throws the signal's reason once it is aborted
 */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort);
  try {
    return await Promise.race([aborted.promise, promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/**
 * Resolves after `ms` milliseconds.
 * @param later starts the timer; absent: `setTimeout`
 * @throws the signal's reason once it is aborted
 */
export async function delay(ms: number, signal: AbortSignal, later: StartTimer = startTimer): Promise<void> {
  const elapsed = Promise.withResolvers<void>();
  const cancel = later(elapsed.resolve, ms);
  try {
    await abortable(elapsed.promise, signal);
  } finally {
    cancel();
  }
}

/** Returns whether a promise resolves within `ms` milliseconds. @throws the promise's error, if it rejects in time */
export async function settlesWithin(ms: number, promise: Promise<unknown>): Promise<boolean> {
  const timeout = Promise.withResolvers<false>();
  const timer = setTimeout(() => timeout.resolve(false), ms);
  try {
    return await Promise.race([promise.then(() => true), timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}
