/**
 * Makes commits durable without keeping the process waiting.
 *
 * With `synchronous = NORMAL` a commit is written to the log (the `-wal` file) but not synced, which takes microseconds;
 * with FULL SQLite would sync it inside `COMMIT`, and nothing else would run meanwhile. Here the log is synced by a second
 * descriptor in the background. Why a commit is durable when a sync that began after it has ended:
 *
 * - A sync concerns the file, not the descriptor: `fdatasync` writes all that any descriptor wrote to it before. So all
 *   frames up to and with the commit are on the disk, and recovery finds every one whose predecessors are there.
 * - A checkpoint may have moved the commit into the database meanwhile, and a later write may have begun the log anew over
 *   its frames. With NORMAL as with FULL, SQLite syncs the log before a checkpoint copies from it, the database before the
 *   log may begin anew, and the header of the new log before its first frames. So the commit is durable in the database
 *   before its frames are written over. For that, no connection may use `synchronous = OFF`; ours do not.
 * - The log keeps its file while this process has the database open: SQLite removes it only under a lock that excludes
 *   every other connection. The descriptor is opened after the connection has read, when the file is there.
 * - SQLite syncs the folder with the first sync of a new log, so the file's name is there too.
 *
 * No locks are lost: SQLite keeps them on the database and the `-shm` file, and POSIX drops a process's locks of a file
 * when any descriptor of it is closed. Those two files must never be opened by anything but SQLite. The log has no locks.
 */
export class WalSync {
  readonly #file: Deno.FsFile;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #failed: Error | undefined;

  /** @param path the `-wal` file of a database that is open */
  constructor(path: string) {
    // Some systems sync only writable descriptors.
    this.#file = Deno.openSync(path, { read: true, write: true });
  }

  /**
   * Resolves when all current commits are durable. One sync serves all calls made before it began.
   *
   * After a failure every call rejects: the system may have dropped pages that it could not write and report the next
   * sync as successful, so the state of the file is unknown.
   */
  durable(): Promise<void> {
    if (this.#running === undefined) return this.#begin();
    const begin = () => this.#begin();
    return this.#next ??= this.#running.then(begin, begin);
  }

  #begin(): Promise<void> {
    this.#next = undefined;
    const running = this.#sync();
    this.#running = running;
    // The waiting sync becomes the current one.
    const end = () => {
      if (this.#next === undefined) this.#running = undefined;
    };
    running.then(end, end);
    return running;
  }

  async #sync(): Promise<void> {
    if (this.#failed !== undefined) throw this.#failed;
    try {
      await this.#file.syncData();
    } catch (cause) {
      throw this.#failed = new Error("Cannot write the ledger: the disk failed", { cause });
    }
  }

  /** Waits for the current sync and closes the file. */
  async close(): Promise<void> {
    await (this.#next ?? this.#running)?.catch(() => {});
    this.#file.close();
  }
}
