/**
 * Notices that the file of the configuration has changed, in whatever way it was written, by looking at it.
 *
 * Its folder is not watched: the runtime's watcher opens and closes each file of a folder that somebody touches, and POSIX
 * takes all locks of a process on a file away when it closes any descriptor of it. Where a store lies in that folder, the
 * next command that closes it would take itself for the last one, and remove the log that this process writes to.
 */

/** What is watched, and how. */
export interface WatchFileOptions {
  path: string;
  /** Called when the file may say something else. */
  changed: () => void;
  /** Time for which the file has to be as it is to count as written, in milliseconds. */
  settleMs?: number;
  /** Time between two looks at the file, in milliseconds. */
  lookMs?: number;
}

/** Editors and tools write a file in several steps; these are over by then. */
const SETTLE_MS = 100;
/** A file that is written without a pause is read in between, after as many looks. */
const MOST_SETTLES = 4;
/** Together with the above, a change is noticed well within a second. A look takes some microseconds. */
const LOOK_MS = 250;

/** Watches a file, also one that is not there yet, or is reached by links that are turned. Returns the function that ends it. */
export function watchFile({ path, changed, settleMs = SETTLE_MS, lookMs = LOOK_MS }: WatchFileOptions): () => void {
  let over = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      timer = setTimeout(resolve, ms);
    });
  }

  async function watch(): Promise<void> {
    let told: string | undefined = await stateOf(path);
    while (!over) {
      await pause(lookMs);
      let state = await stateOf(path);
      if (over || state === told) continue;
      told = undefined;
      for (let looks = 0; looks < MOST_SETTLES && !over && told === undefined; looks++) {
        await pause(settleMs);
        const next = await stateOf(path);
        // What has not settled is told now, and looked at once more: it may change within one tick of its time stamps.
        if (next === state) told = next;
        state = next;
      }
      if (!over) changed();
    }
  }

  void watch();
  return () => {
    over = true;
    clearTimeout(timer);
  };
}

/** What changes with the file's content; the same text for every file that is not there. */
async function stateOf(path: string): Promise<string> {
  try {
    const { mtime, size, ino, dev } = await Deno.stat(path);
    return `${mtime?.getTime()} ${size} ${ino} ${dev}`;
  } catch {
    return "none";
  }
}
