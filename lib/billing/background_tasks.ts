/** Billing tasks that outlive their client's connection. The process waits for them before it ends. */

/** Work in progress that no request waits for. */
export interface BackgroundTasks {
  /** Adds a task without a waiting caller. The task logs its own errors. */
  add(work: Promise<unknown>): void;
  /** Resolves when all tasks are done. */
  done(): Promise<void>;
}

/** Creates an empty set of tasks. */
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
