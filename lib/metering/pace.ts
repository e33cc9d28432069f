/** Long computations a slice at a time, so that everybody else is served meanwhile. */

/** Longest slice, in milliseconds. */
const SLICE_MS = 8;

const waiting: (() => void)[] = [];

function arm(): void {
  setTimeout(() => {
    waiting.shift()?.();
    if (waiting.length > 0) arm();
  }, 0);
}

/**
 * Resolves in a later turn of the event loop. Each turn resolves one caller only, in the order they came: many long
 * computations at once take no more of a turn than one does.
 */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) arm();
  });
}

/** Runs a computation to its end, at most about 8 ms of it in one turn of the event loop. */
export async function inSlices<T>(work: Generator<void, T>): Promise<T> {
  for (;;) {
    await turn();
    const end = performance.now() + SLICE_MS;
    do {
      const step = work.next();
      if (step.done === true) return step.value;
    } while (performance.now() < end);
  }
}

/** Runs a computation to its end at once. */
export function atOnce<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}
