/** Starts timers as a function that tests can replace. */

/** Starts a timer of `ms` milliseconds; the returned function cancels it. */
export type StartTimer = (run: () => void, ms: number) => () => void;

/** Starts a timer with `setTimeout`. */
export function startTimer(run: () => void, ms: number): () => void {
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}

/**
 * Number of consecutive timers that make up the timeout of a call to another process. A stall of this process's event
 * loop uses up at most one of them: the other process may have received the call only after the stall, and its answer,
 * which has arrived, may not have been read yet.
 */
const TIMERS_PER_TIMEOUT = 8;

/** Starts a timeout for a call to another process, which ends late if this process stalls. Returns a function that cancels it. */
export function startCallTimeout(run: () => void, ms: number, later: StartTimer = startTimer): () => void {
  let cancel = () => {};
  const wait = (parts: number): void => {
    cancel = parts === 0 ? later(run, 0) : later(() => wait(parts - 1), ms / TIMERS_PER_TIMEOUT);
  };
  wait(TIMERS_PER_TIMEOUT);
  return () => cancel();
}
