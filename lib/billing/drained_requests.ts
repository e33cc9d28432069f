/** Answers read to their end for billing alone, after their clients disconnected. */

/** Bounds the number of drained answers: each holds memory and an upstream connection. */
export interface DrainedRequests {
  /**
   * Counts a drained answer until `done` resolves.
   * @returns false if there are `most` already: the caller must cancel its upstream instead
   */
  begin(done: Promise<unknown>, most: number): boolean;
}

/** Starts at zero. */
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
