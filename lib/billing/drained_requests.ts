/** Answers that are read to their end, for the bill alone, as their clients have left. */

/** Counts such answers, as each keeps memory and a connection to its upstream. */
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
