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
  /** Resolves after so many milliseconds, and once the signal aborts; absent: in real time. */
  pause?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Editors and tools write a file in several steps, which are done by then. */
const SETTLE_MS = 100;
/** A file that is written continuously is reported after this many checks. */
const MAX_SETTLES = 4;
/** With the above, a change is noticed within a second. A check takes some microseconds. */
const CHECK_MS = 250;

/**
 * Watches a file, which may not exist yet or be a symbolic link that changes.
 * @returns stops it; resolves when the file is no longer looked at
 */
export function watchFile({ path, changed, pause = pauseFor }: WatchFileOptions): () => Promise<void> {
  const ending = new AbortController();
  const { signal } = ending;

  async function watch(): Promise<void> {
    let reported: string | undefined = await stateOf(path);
    while (!signal.aborted) {
      await pause(CHECK_MS, signal);
      let state = await stateOf(path);
      if (signal.aborted || state === reported) continue;
      reported = undefined;
      for (let checks = 0; checks < MAX_SETTLES && !signal.aborted && reported === undefined; checks++) {
        await pause(SETTLE_MS, signal);
        const next = await stateOf(path);
        // An unsettled file is reported now and checked again: it may change within one tick of its timestamps.
        if (next === state) reported = next;
        state = next;
      }
      if (!signal.aborted) changed();
    }
  }

  const watching = watch();
  return () => {
    ending.abort();
    return watching;
  };
}

function pauseFor(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
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
