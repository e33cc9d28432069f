/**
 * Detects changes of the configuration's file by polling, however it is written.
 *
 * A watcher of its folder would open and close every file that changes there, and POSIX drops all locks of a process on a
 * file when it closes any descriptor of that file. A store in the same folder would lose its locks, and the next command
 * that closes the store would remove the WAL that this process writes to.
 */

/** Options of {@linkcode watchFile}. */
export interface WatchFileOptions {
  path: string;
  /** Called when the file may have changed. */
  changed: () => void;
  /** Time without changes after which the file counts as written, in milliseconds. */
  settleMs?: number;
  /** Time between two checks of the file, in milliseconds. */
  checkMs?: number;
}

/** Editors and tools write a file in several steps, which are done by then. */
const SETTLE_MS = 100;
/** A file that is written continuously is reported after this many checks. */
const MOST_SETTLES = 4;
/** With the above, a change is noticed within a second. A check takes some microseconds. */
const CHECK_MS = 250;

/** Watches a file, which may not exist yet or be a symbolic link that changes. Returns a function that stops it. */
export function watchFile({ path, changed, settleMs = SETTLE_MS, checkMs = CHECK_MS }: WatchFileOptions): () => void {
  let over = false;
  let timer: ReturnType<typeof setTimeout> | undefined;

  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      timer = setTimeout(resolve, ms);
    });
  }

  async function watch(): Promise<void> {
    let reported: string | undefined = await stateOf(path);
    while (!over) {
      await pause(checkMs);
      let state = await stateOf(path);
      if (over || state === reported) continue;
      reported = undefined;
      for (let checks = 0; checks < MOST_SETTLES && !over && reported === undefined; checks++) {
        await pause(settleMs);
        const next = await stateOf(path);
        // An unsettled file is reported now and checked again: it may change within one tick of its timestamps.
        if (next === state) reported = next;
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

/** A fingerprint of the file's state; constant while it is missing. */
async function stateOf(path: string): Promise<string> {
  try {
    const { mtime, size, ino, dev } = await Deno.stat(path);
    return `${mtime?.getTime()} ${size} ${ino} ${dev}`;
  } catch {
    return "none";
  }
}
