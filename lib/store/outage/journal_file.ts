/** The file of a journal: appends lines and syncs them to the disk, and reads lines in chunks. */
import { dirname, resolve } from "node:path";
import { messageOf } from "../../errors.ts";
import { findFile, makeFile, syncFolder } from "../folder.ts";
import { takeFileOwnership } from "../sqlite/owner_lock.ts";
import { StoreError } from "../store.ts";

/** Longest line, in bytes. Longer ones are never written, and are damage when they are read. */
export const MAX_LINE_BYTES = 32 * 1024 * 1024;

/** Bytes that are read at a time. */
const CHUNK_BYTES = 256 * 1024;

/** Code of the line feed. */
const NEWLINE = 10;

/** A line of the file. */
export interface Line {
  /** Text without the line feed; `undefined` if the line is too long. */
  text: string | undefined;
  /** Offset of the next line, in bytes. */
  end: number;
}

/**
 * Opens a file for this process alone. Creates its folder (0700) and the file (0600) if they are missing.
 * @throws {StoreError} if it cannot be opened, or another process has it
 */
export function openJournalFile(path: string): JournalFile {
  const resources: { close(): void }[] = [];
  try {
    const file = resolve(path);
    resources.unshift(takeFileOwnership(file));
    const isNew = makeFile(file);
    const writer = Deno.openSync(file, { append: true });
    resources.unshift(writer);
    const reader = Deno.openSync(file, { read: true });
    resources.unshift(reader);
    if (isNew) syncFolder(dirname(file));
    return new JournalFile({ path: file, writer, reader, resources });
  } catch (cause) {
    for (const resource of resources) resource.close();
    throw new StoreError(`Cannot open the journal "${path}": ${reasonOf(cause)}`, { cause });
  }
}

/** A file of lines. A call must not begin before the previous one has ended. */
export class JournalFile {
  readonly #path: string;
  readonly #writer: Deno.FsFile;
  readonly #reader: Deno.FsFile;
  readonly #resources: readonly { close(): void }[];
  #length: number;
  readonly #inode: number | null;
  #broken: Error | undefined;

  constructor(
    { path, writer, reader, resources }: {
      path: string;
      writer: Deno.FsFile;
      reader: Deno.FsFile;
      resources: { close(): void }[];
    },
  ) {
    this.#path = path;
    this.#writer = writer;
    this.#reader = reader;
    this.#resources = resources;
    const { size, ino } = writer.statSync();
    this.#length = size;
    this.#inode = ino;
  }

  /** Length of the file, in bytes. */
  get length(): number {
    return this.#length;
  }

  /** The error that made the file unwritable; `undefined` while it is writable. */
  get broken(): Error | undefined {
    return this.#broken;
  }

  /**
   * Appends a line. It is synced when the promise resolves; if it rejects, the line is not in the file, or the file is
   * broken.
   */
  async write(line: Uint8Array): Promise<void> {
    if (this.#broken !== undefined) throw this.#broken;
    try {
      for (let at = 0; at < line.length;) at += await this.#writer.write(line.subarray(at));
    } catch (cause) {
      // A full disk may have room again later, so a partial line must not stay before the next one.
      await this.cut(this.#length);
      throw cause;
    }
    await this.#onDisk(() => this.#writer.syncData());
    await this.#checkPlace(this.#length + line.length);
    this.#length += line.length;
  }

  async cut(offset: number): Promise<void> {
    if (this.#broken !== undefined) throw this.#broken;
    await this.#onDisk(async () => {
      await this.#writer.truncate(offset);
      await this.#writer.sync();
    });
    this.#length = offset;
  }

  /** Reads the lines from this offset. An incomplete last line is left out. */
  async *lines(from: number): AsyncGenerator<Line> {
    // `buffer` has the bytes from offset `at` on that were read but not yielded.
    let [at, buffer, isTooLong] = [from, new Uint8Array(), false];
    while (at + buffer.length < this.#length) {
      const before = buffer.length;
      buffer = joined(buffer, await this.#readAt(at + before));
      if (buffer.length === before) return;
      let start = 0;
      for (let end = buffer.indexOf(NEWLINE, before); end >= 0; end = buffer.indexOf(NEWLINE, start)) {
        yield {
          text: isTooLong ? undefined : new TextDecoder().decode(buffer.subarray(start, end)),
          end: at + end + 1,
        };
        [start, isTooLong] = [end + 1, false];
      }
      if (buffer.length - start > MAX_LINE_BYTES) [start, isTooLong] = [buffer.length, true];
      at += start;
      buffer = buffer.slice(start);
    }
  }

  close(): void {
    for (const resource of this.#resources) resource.close();
  }

  /**
   * Runs a write. If it fails, the file is broken: after a failed sync the state of the disk is unknown, and a later
   * sync may succeed although data was lost.
   */
  async #onDisk<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      throw this.#broken = new Error("Cannot write the journal: the disk failed", { cause });
    }
  }

  /** Checks that the file was not deleted or replaced. A deleted file takes writes, but they are lost at the next start. */
  async #checkPlace(length: number): Promise<void> {
    const found = await this.#onDisk(() => findFile(this.#path));
    if (found?.ino === this.#inode && found.size === length) return;
    throw this.#broken = new Error(`Cannot write the journal: "${this.#path}" was deleted or replaced`);
  }

  async #readAt(offset: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(Math.min(CHUNK_BYTES, this.#length - offset));
    await this.#reader.seek(offset, Deno.SeekMode.Start);
    return bytes.subarray(0, await this.#reader.read(bytes) ?? 0);
  }
}

function joined(one: Uint8Array<ArrayBuffer>, other: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}

function reasonOf(cause: unknown): string {
  const reason = messageOf(cause);
  return /another gateway/.test(reason)
    ? 'another gateway uses it; set a different "nodes.journal" path for each node'
    : reason;
}
