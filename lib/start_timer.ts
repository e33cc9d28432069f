/** Starts timers as a function that tests can replace. */

/** Starts a timer of `ms` milliseconds; the returned function cancels it. */
export type StartTimer = (run: () => void, ms: number) => () => void;

/** Starts a timer with `setTimeout`. */
export function startTimer(run: () => void, ms: number): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}
