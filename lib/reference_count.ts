/** Counts the uses of a resource, so that it is closed after the last one. */

/** A count of the references to a resource. */
export interface ReferenceCount {
  /** Adds a reference. The returned function removes it; further calls do nothing. */
  begin(): () => void;
  /** Resolves when there are no references. */
  whenDone(): Promise<void>;
}

/** Creates a counter at zero. */
export function createReferenceCount(): ReferenceCount {
  let count = 0;
  let waiting: (() => void)[] = [];
  return {
    begin() {
      count++;
      let ended = false;
      return () => {
        if (ended) return;
        ended = true;
        if (--count > 0) return;
        for (const resolve of waiting) resolve();
        waiting = [];
      };
    },
    async whenDone() {
      while (count > 0) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}
