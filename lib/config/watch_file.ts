/**
 * Detects changes of the configuration file by polling, whether it is rewritten, replaced, or a link to another file.
 *
 * Watching its folder would be unsafe: a watcher opens and closes every file that changes there, and POSIX drops all
 * locks of a process on a file when it closes any descriptor of that file. A store in the same folder would lose its
 * locks, and the next command that closes the store would remove the WAL that this process writes to.
 */
import { delay } from "../abort.ts";

/** Options of {@linkcode watchFile}. */
export interface WatchFileOptions {
  path: string;
  /** Called when the file may have changed. */
  changed: () => void;
  /**
   * Unix time in milliseconds. A change since then is reported, even if it came before the watch began: a start may take
   * minutes after the file was read. Absent: only later changes are reported.
   */
  since?: number | undefined;
  /** Resolves after `ms` milliseconds, or once the signal aborts; absent: with a real timer. */
  pause?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Time for which a file must stay unchanged before it is reported: editors and tools write a file in several steps. */
const SETTLE_MS = 100;
/** A file that keeps changing is reported after this many checks. */
const MAX_SETTLE_CHECKS = 4;
/** Interval between two checks. A change is reported within a second; a check takes a few microseconds. */
const CHECK_MS = 250;

/**
 * Watches a file, which may not exist yet, or may be a symbolic link whose target changes.
 * @returns a function that stops watching and resolves when the last check is done
 */
export function watchFile(
  { path, changed, since = Infinity, pause = (ms, signal) => delay(ms, signal).catch(() => {}) }: WatchFileOptions,
): () => Promise<void> {
  const ending = new AbortController();
  const { signal } = ending;

  async function watch(): Promise<void> {
    // One look at the file: between two, it could change unnoticed.
    const { state: first, changedAt } = await lookAt(path);
    let reported = changedAt >= since ? undefined : first;
    while (!signal.aborted) {
      await pause(CHECK_MS, signal);
      let { state } = await lookAt(path);
      if (signal.aborted || state === reported) continue;
      reported = undefined;
      for (let checks = 0; checks < MAX_SETTLE_CHECKS && !signal.aborted && reported === undefined; checks++) {
        await pause(SETTLE_MS, signal);
        const { state: next } = await lookAt(path);
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

/**
 * Returns a fingerprint of the file's state, and the time of its last change in Unix milliseconds; `none` and 0 while it
 * is missing.
 */
async function lookAt(path: string): Promise<{ state: string; changedAt: number }> {
  try {
    const { mtime, ctime, size, ino, dev } = await Deno.stat(path);
    const modifiedAt = mtime?.getTime() ?? 0;
    // A new name, owner or mode changes only the inode's time (ctime).
    const changedAt = Math.max(modifiedAt, ctime?.getTime() ?? 0);
    return { state: `${modifiedAt} ${changedAt} ${size} ${ino} ${dev}`, changedAt };
  } catch {
    return { state: "none", changedAt: 0 };
  }
}
