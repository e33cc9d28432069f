/** Waits that end early: when an `AbortSignal` is aborted, or after a time. */

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
 * @throws the signal's reason once it is aborted
 */
export async function delay(ms: number, signal: AbortSignal): Promise<void> {
  const elapsed = Promise.withResolvers<void>();
  const timer = setTimeout(elapsed.resolve, ms);
  try {
    await abortable(elapsed.promise, signal);
  } finally {
    clearTimeout(timer);
  }
}

/** Returns whether a promise resolves within `ms` milliseconds. @throws the error with which it rejects before */
export async function settlesWithin(ms: number, promise: Promise<unknown>): Promise<boolean> {
  const timeout = Promise.withResolvers<false>();
  const timer = setTimeout(() => timeout.resolve(false), ms);
  try {
    return await Promise.race([promise.then(() => true), timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}
