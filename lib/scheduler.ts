/** Cooperative scheduling: long computations run in slices, so that other requests are served in between. */
import { AsyncLocalStorage } from "node:async_hooks";

/** Time after which a slice ends, in milliseconds. */
const SLICE_MS = 8;

/**
 * Size, in bytes or characters, from which a body takes long to read, to parse or to write. Callers yield to the event
 * loop between those steps.
 */
export const LARGE_BODY_BYTES = 4_000_000;

/**
 * Size from which a request yields to the event loop between its steps: 60,000 parts take 10 to 20 ms to check, to
 * decode or to estimate.
 */
export const LONG_REQUEST_BYTES = 400_000;

/**
 * Maximum number of characters of a text to read or write in one turn of the event loop: 1 million escapes of lone
 * surrogates take 10 ms.
 */
export const LONG_TEXT_CHARS = 1_000_000;

/** The API key that the current computation is for. */
const owner = new AsyncLocalStorage<string | undefined>();

/** Calls a function, whose long computations take turns with those of other API keys. */
export function runForKey<T>(keyId: string | undefined, call: () => T): T {
  return owner.run(keyId, call);
}

/**
 * Returns a function that calls other functions on behalf of the API key of the current computation. Streams need it,
 * because the server reads them outside the handler of their request.
 */
export function keepKey(): <T>(call: () => T) => T {
  const keyId = owner.getStore();
  return (call) => owner.run(keyId, call);
}

/** A queue in which API keys take turns, so that no key delays the others for long. Items of one key stay in order. */
export class TurnQueue<T> {
  /** Items by API key. The key whose turn is next is first. */
  readonly #owners: { key: string | undefined; items: T[] }[] = [];

  get size(): number {
    return this.#owners.reduce((sum, { items }) => sum + items.length, 0);
  }

  /** The item that `take` returns; undefined if there is none. */
  get next(): T | undefined {
    return this.#owners[0]?.items[0];
  }

  /** Adds an item of the API key that the current computation is for. */
  add(item: T): void {
    const key = owner.getStore();
    const items = this.#owners.find((owner) => owner.key === key)?.items;
    if (items === undefined) this.#owners.push({ key, items: [item] });
    else items.push(item);
  }

  /** Removes and returns the next item. */
  take(): T | undefined {
    const first = this.#owners.shift();
    const item = first?.items.shift();
    if (first !== undefined && first.items.length > 0) this.#owners.push(first);
    return item;
  }

  /** Removes an item; does nothing if it is not in the queue. */
  remove(item: T): void {
    const at = this.#owners.findIndex(({ items }) => items.includes(item));
    const items = this.#owners[at]?.items;
    items?.splice(items.indexOf(item), 1);
    if (items?.length === 0) this.#owners.splice(at, 1);
  }
}

const waiting = new TurnQueue<() => void>();

function scheduleNext(): void {
  setTimeout(() => {
    waiting.take()?.();
    if (waiting.next !== undefined) scheduleNext();
  }, 0);
}

/**
 * Resolves in a later turn of the event loop. Each turn resolves a single caller, so that many long computations take
 * no more of a turn than one.
 */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.next === undefined) scheduleNext();
    waiting.add(resolve);
  });
}

/**
 * Runs a computation to its end in slices of about 8 ms, each in a turn of the event loop of its own.
 * @throws the signal's reason, before the next slice, once it is aborted
 */
export async function runSliced<T>(work: Generator<void, T>, signal?: AbortSignal): Promise<T> {
  await yieldToEventLoop();
  return await runSlicedNow(work, signal);
}

/**
 * Runs like `runSliced`, but begins in the current turn of the event loop: for work that usually ends in its first
 * slice. A turn takes 3 ms, so a thousand callers with short work would otherwise delay all others for seconds.
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

/** Runs a computation to its end without yielding. */
export function runToEnd<T>(work: Generator<void, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

/** Items processed between two checks of the clock. */
const ITEMS_PER_STEP = 256;

/** Maps items in slices; a short list at once. */
export async function mapSliced<Item, Made>(
  items: readonly Item[],
  make: (item: Item) => Made,
): Promise<Made[]> {
  return items.length <= ITEMS_PER_STEP ? items.map((item) => make(item)) : await runSliced(mapped(items, make));
}

function* mapped<Item, Made>(items: readonly Item[], make: (item: Item) => Made): Generator<void, Made[]> {
  const made: Made[] = [];
  for (const item of items) {
    made.push(make(item));
    if (made.length % ITEMS_PER_STEP === 0) yield;
  }
  return made;
}

/** Returns a sorted copy, made in slices; a short list is sorted at once. The sort is stable. */
export async function sortSliced<Item>(
  items: readonly Item[],
  compare: (one: Item, other: Item) => number,
): Promise<Item[]> {
  return items.length <= ITEMS_PER_STEP ? items.toSorted(compare) : await runSliced(sorted(items, compare));
}

/** Merge sort: the runtime sorts short runs, which are merged two by two until one is left. */
function* sorted<Item>(
  items: readonly Item[],
  compare: (one: Item, other: Item) => number,
): Generator<void, Item[]> {
  let from: Item[] = [];
  for (let at = 0; at < items.length; at += ITEMS_PER_STEP) {
    from.push(...items.slice(at, at + ITEMS_PER_STEP).sort(compare));
    yield;
  }
  for (let width = ITEMS_PER_STEP; width < from.length; width *= 2) {
    const to: Item[] = [];
    for (let start = 0; start < from.length; start += 2 * width) {
      const middle = Math.min(start + width, from.length);
      const end = Math.min(middle + width, from.length);
      let [left, right] = [start, middle];
      while (left < middle || right < end) {
        const [one, other] = [from[left] as Item, from[right] as Item];
        if (right === end || (left < middle && compare(one, other) <= 0)) to.push(one), left++;
        else to.push(other), right++;
        if (to.length % ITEMS_PER_STEP === 0) yield;
      }
    }
    from = to;
  }
  return from;
}

/**
 * Returns a function that runs calls in order, at most `concurrent` of them at a time.
 * @param busy a call fails with `error()` if `waiting` others wait; absent: any number may wait
 */
export function boundConcurrency(
  concurrent: number,
  busy?: { waiting: number; error: () => Error },
): <Result>(run: () => Promise<Result>) => Promise<Result> {
  const waiting: (() => void)[] = [];
  let free = concurrent;
  return async (run) => {
    if (free > 0) free--;
    else if (busy !== undefined && waiting.length >= busy.waiting) throw busy.error();
    // A call that ends passes its slot to the next one.
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await run();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free++;
      else next();
    }
  };
}

/** Returns a function that runs calls one after the other, in order. */
export function createSerializer(): <Result>(run: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve();
  return (run) => {
    const result = last.then(run);
    last = result.catch(() => {});
    return result;
  };
}
