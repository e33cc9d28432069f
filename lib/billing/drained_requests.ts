/** Answers read to their end for billing alone, after their clients disconnected. */

/** Bounds the number of drained answers: each holds memory and an upstream connection. */
export interface DrainedRequests {
  /**
   * Takes note of one more, until `done` resolves.
   * @returns false where there are `most` already: then its upstream is to be cancelled
   */
  begin(done: Promise<unknown>, most: number): boolean;
}

/** Starts without any. */
export function createDrainedRequests(): DrainedRequests {
  let open = 0;
  return {
    begin(done, most) {
      if (open >= most) return false;
      open++;
      const end = () => void open--;
      done.then(end, end);
      return true;
    },
  };
}
