/** Who still needs a set of upstreams: when others have taken their place, they are closed once nobody does. */

/** Those who use something. */
export interface Uses {
  /** Begins a use. What it returns ends it, once. */
  begin(): () => void;
  /** Resolves when nobody uses it. */
  over(): Promise<void>;
}

/** Starts without any use. */
export function createUses(): Uses {
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
    async over() {
      while (count > 0) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}
