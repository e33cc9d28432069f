/** Work for the bill that goes on when the client has gone: the end of the process waits for it. */

/** What is still to be done. */
export interface BackgroundTasks {
  /** Takes note of work that nobody waits for. It tells by itself what goes wrong. */
  add(work: Promise<unknown>): void;
  /** Resolves when nothing is left to do. */
  done(): Promise<void>;
}

/** Starts with nothing to do. */
export function createBackgroundTasks(): BackgroundTasks {
  const running = new Set<Promise<void>>();
  return {
    add(work) {
      const ended: Promise<void> = work.then(() => {}, () => {}).finally(() => running.delete(ended));
      running.add(ended);
    },
    async done() {
      while (running.size > 0) await Promise.all(running);
    },
  };
}
