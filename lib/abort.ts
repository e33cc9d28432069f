/** Waits that end early when an `AbortSignal` is aborted. */

/**
 * Waits for a promise.
 * @throws the signal's reason, as soon as it is aborted
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

/** Resolves after a time, in milliseconds. @throws the signal's reason, as soon as it is aborted */
export async function delay(ms: number, signal: AbortSignal): Promise<void> {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(over.resolve, ms);
  try {
    await abortable(over.promise, signal);
  } finally {
    clearTimeout(timer);
  }
}
