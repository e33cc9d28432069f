import { findFile } from "../folder.ts";

/** Size of a test file, in bytes: more than a transaction with a few entries needs. */
const TEST_BYTES = 256 * 1024;

/** Time after which a sync checks again that the files are in their places, in milliseconds. */
const CHECK_MS = 1_000;

/**
 * Makes commits durable without blocking the process.
 *
 * With `synchronous = NORMAL`, SQLite writes a commit to the log (the `-wal` file) without syncing it, which takes
 * microseconds. With FULL it would sync within `COMMIT`, and block the process meanwhile. Here the log is synced in the
 * background, through a second descriptor. A commit is durable when a sync that began after it has ended, because:
 *
 * - A sync concerns the file, not the descriptor: `fdatasync` writes everything that any descriptor has written to the
 *   file before. So all frames up to those of the commit are on the disk, and recovery finds each frame whose
 *   predecessors are there.
 * - A checkpoint may meanwhile have moved the commit into the database, and a later write may have restarted the log
 *   and overwritten its frames. With NORMAL as with FULL, SQLite syncs the log before a checkpoint copies from it, the
 *   database before the log may be restarted, and the header of the new log before its first frames. So the commit is
 *   durable in the database before its frames are overwritten. This requires that no connection uses
 *   `synchronous = OFF`.
 * - The file of the log stays while this process has the database open: SQLite deletes it only under a lock that
 *   excludes every other connection. The descriptor is opened after the connection has read, so that the file exists.
 * - SQLite syncs the folder with the first sync of a new log, so the name of the file is durable, too.
 *
 * A file that was deleted or replaced still takes writes, which are lost with the process, or come back with the file.
 * So nothing may be written any more if the names of the database and the log lead to other files than at first.
 *
 * No locks are lost: POSIX drops all locks of a process on a file when the process closes any descriptor of the file.
 * SQLite locks the database and the `-shm` file, which nothing but SQLite may ever open. It does not lock the log.
 */
export class WalSync {
  readonly #path: string;
  readonly #file: Deno.FsFile;
  /** The database and its log, with their inodes. */
  readonly #names: ReadonlyMap<string, number | null>;
  /** When the names were last checked, by `performance.now()`. */
  #checkedAt = performance.now();
  /** The sync in progress, and one that begins after it. */
  #current: Promise<void> | undefined;
  #waiting: Promise<void> | undefined;
  #failure: Error | undefined;

  /** @param path an open database @param log its `-wal` file */
  constructor(path: string, log = `${path}-wal`) {
    this.#path = path;
    // Some systems sync only writable descriptors.
    this.#file = Deno.openSync(log, { read: true, write: true });
    this.#names = new Map([path, log].map((name) => [name, Deno.statSync(name).ino]));
  }

  /**
   * Resolves when all commits up to now are durable. One sync serves all calls that were made before it began.
   *
   * After a failure every call rejects: the operating system may have dropped pages that it could not write, and report
   * the next sync as successful, so the state of the file is unknown.
   */
  durable(): Promise<void> {
    if (this.#current === undefined) return this.#startSync();
    const begin = () => this.#startSync();
    return this.#waiting ??= this.#current.then(begin, begin);
  }

  /** Writes a file beside the database, and removes it. @throws {Error} if the disk has no room or is read-only */
  async testRoom(): Promise<void> {
    const file = `${this.#path}-test`;
    try {
      await Deno.writeFile(file, new Uint8Array(TEST_BYTES), { mode: 0o600 });
    } finally {
      await Deno.remove(file).catch(() => {});
    }
  }

  #startSync(): Promise<void> {
    this.#waiting = undefined;
    const running = this.#sync();
    this.#current = running;
    // If a sync waits, it becomes the current one by itself.
    const end = () => {
      if (this.#waiting === undefined) this.#current = undefined;
    };
    running.then(end, end);
    return running;
  }

  async #sync(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    try {
      await this.#file.syncData();
    } catch (cause) {
      throw this.#failure ??= new Error("Cannot write the ledger: the disk failed", { cause });
    }
  }

  /**
   * Checks once a second that the files are in their places. To be called before a commit, which would otherwise come
   * back with the file although it was reported as failed.
   * @returns undefined if the last check is recent
   * @throws {Error} if a file was deleted or replaced
   */
  checkPlace(): Promise<void> | undefined {
    return performance.now() - this.#checkedAt < CHECK_MS ? undefined : this.#checkNames();
  }

  async #checkNames(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    this.#checkedAt = performance.now();
    for (const [name, inode] of this.#names) {
      if ((await findFile(name))?.ino === inode) continue;
      throw this.#failure = new Error(`Cannot write the ledger: "${name}" was deleted or replaced`);
    }
  }

  /** Waits for the syncs that were requested, and closes the file. */
  async close(): Promise<void> {
    await (this.#waiting ?? this.#current)?.catch(() => {});
    this.#file.close();
  }
}
