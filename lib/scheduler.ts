/** Cooperative scheduling: long computations run in slices, so that other requests are served in between. */

/** Longest slice, in milliseconds. */
const SLICE_MS = 8;

/**
 * Bytes, or characters, of a body that takes long to read, to parse or to write. Callers yield to the event loop between
 * those steps.
 */
export const LARGE_BODY_BYTES = 4_000_000;

/** Bytes of a request that yields between its steps: 60,000 parts take 10 to 20 ms to check, to decode or to estimate. */
export const LONG_REQUEST_BYTES = 400_000;

/** Characters of a text that one turn reads or writes at most: 1 million escapes of lone surrogates take 10 ms. */
export const LONG_TEXT_CHARS = 1_000_000;

const waiting: (() => void)[] = [];

function arm(): void {
  setTimeout(() => {
    waiting.shift()?.();
    if (waiting.length > 0) arm();
  }, 0);
}

/**
 * Resolves in a later turn of the event loop. Each turn resolves one caller, in order of arrival, so that many long
 * computations take no more of a turn than one does.
 */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) arm();
  });
}

/**
 * Runs a computation to its end, at most about 8 ms of it in one turn of the event loop.
 * @throws the reason of the signal before the next slice, where it is given up
 */
export async function runSliced<T>(work: Generator<void, T>, signal?: AbortSignal): Promise<T> {
  await yieldToEventLoop();
  return await runSlicedNow(work, signal);
}

/**
 * Runs as `runSliced`, but begins at once: for work that most likely ends in its first slice. A turn takes 3 ms, so that a
 * thousand callers of short work would otherwise keep all others waiting for seconds.
 */
export async function runSlicedNow<T>(work: Generator<void, T>, signal?: AbortSignal): Promise<T> {
  for (;; await yieldToEventLoop()) {
    signal?.throwIfAborted();
    const end = performance.now() + SLICE_MS;
    do {
      const step = work.next();
      if (step.done === true) return step.value;
    } while (performance.now() < end);
  }
}

/** Runs a computation to its end at once. */
export function runToEnd<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** Items processed between two looks at the clock. */
const ITEMS_AT_ONCE = 256;

/** Maps items in slices. */
export async function mapSliced<Item, Made>(
  items: readonly Item[],
  make: (item: Item) => Made,
): Promise<Made[]> {
  return items.length <= ITEMS_AT_ONCE ? items.map((item) => make(item)) : await runSliced(mapped(items, make));
}

function* mapped<Item, Made>(items: readonly Item[], make: (item: Item) => Made): Generator<void, Made[]> {
  const results: Made[] = [];
  for (const item of items) {
    results.push(make(item));
    if (results.length % ITEMS_AT_ONCE === 0) yield;
  }
  return results;
}

/** Sorts items in slices; the sort is stable. */
export async function sortSliced<Item>(
  items: readonly Item[],
  compare: (one: Item, other: Item) => number,
): Promise<Item[]> {
  return items.length <= ITEMS_AT_ONCE ? items.toSorted(compare) : await runSliced(sorted(items, compare));
}

/** Short runs are sorted by the runtime, and merged two by two until one is left. */
function* sorted<Item>(
  items: readonly Item[],
  compare: (one: Item, other: Item) => number,
): Generator<void, Item[]> {
  let from: Item[] = [];
  for (let at = 0; at < items.length; at += ITEMS_AT_ONCE) {
    from.push(...items.slice(at, at + ITEMS_AT_ONCE).sort(compare));
    yield;
  }
  for (let width = ITEMS_AT_ONCE; width < from.length; width *= 2) {
    const to: Item[] = [];
    for (let start = 0; start < from.length; start += 2 * width) {
      const middle = Math.min(start + width, from.length);
      const end = Math.min(middle + width, from.length);
      let [left, right] = [start, middle];
      while (left < middle || right < end) {
        const [one, other] = [from[left] as Item, from[right] as Item];
        if (right === end || (left < middle && compare(one, other) <= 0)) to.push(one), left++;
        else to.push(other), right++;
        if (to.length % ITEMS_AT_ONCE === 0) yield;
      }
    }
    from = to;
  }
  return from;
}
