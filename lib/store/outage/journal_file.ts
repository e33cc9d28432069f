/** The journal's file: lines that are synced when they are written. */
import { dirname, resolve } from "node:path";
import { messageOf } from "../../errors.ts";
import { makeFile, syncFolder } from "../folder.ts";
import { takeFile } from "../sqlite/owner_lock.ts";
import { StoreError } from "../store.ts";

/** Longest line, in bytes. Longer lines are never written. */
export const MAX_LINE_BYTES = 32 * 1024 * 1024;

/** Bytes read at a time. */
const CHUNK_BYTES = 256 * 1024;

const NEWLINE = 10;

/** A line of the file. */
export interface Line {
  /** Text without the line feed; `undefined` if the line is too long. */
  text: string | undefined;
  /** Offset of the next line, in bytes. */
  end: number;
}

/**
 * Opens a file exclusively, creating its folder (0700) and the file (0600) if they are missing.
 * @throws {StoreError} if that fails, or another process has it
 */
export function openJournalFile(path: string): JournalFile {
  const opened: { close(): void }[] = [];
  try {
    const file = resolve(path);
    opened.unshift(takeFile(file));
    const isNew = makeFile(file);
    const writer = Deno.openSync(file, { append: true });
    opened.unshift(writer);
    const reader = Deno.openSync(file, { read: true });
    opened.unshift(reader);
    if (isNew) syncFolder(dirname(file));
    return new JournalFile({ writer, reader, opened });
  } catch (cause) {
    for (const each of opened) each.close();
    throw new StoreError(`Cannot open the journal "${path}": ${reasonOf(cause)}`, { cause });
  }
}

/** A file of lines. One call at a time. */
export class JournalFile {
  readonly #writer: Deno.FsFile;
  readonly #reader: Deno.FsFile;
  readonly #opened: readonly { close(): void }[];
  #length: number;
  #broken: Error | undefined;

  constructor({ writer, reader, opened }: { writer: Deno.FsFile; reader: Deno.FsFile; opened: { close(): void }[] }) {
    this.#writer = writer;
    this.#reader = reader;
    this.#opened = opened;
    this.#length = writer.statSync().size;
  }

  /** Length, in bytes. */
  get length(): number {
    return this.#length;
  }

  /** The error that made the file unwritable; `undefined` while it is writable. */
  get broken(): Error | undefined {
    return this.#broken;
  }

  /**
   * Appends a line. It is synced when this resolves; if it rejects, the line is not in the file, or the file is broken.
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
    this.#length += line.length;
  }

  /** Truncates the file at this offset. */
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
    let [at, rest, isTooLong] = [from, new Uint8Array(), false];
    while (at + rest.length < this.#length) {
      const before = rest.length;
      rest = joined(rest, await this.#readAt(at + before));
      if (rest.length === before) return;
      let start = 0;
      for (let end = rest.indexOf(NEWLINE, before); end >= 0; end = rest.indexOf(NEWLINE, start)) {
        yield { text: isTooLong ? undefined : new TextDecoder().decode(rest.subarray(start, end)), end: at + end + 1 };
        [start, isTooLong] = [end + 1, false];
      }
      if (rest.length - start > MAX_LINE_BYTES) [start, isTooLong] = [rest.length, true];
      at += start;
      rest = rest.slice(start);
    }
  }

  /** Closes the file. */
  close(): void {
    for (const each of this.#opened) each.close();
  }

  /** After a failed sync the state of the disk is unknown, and the next sync may succeed without the lost data. */
  async #onDisk(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (cause) {
      throw this.#broken = new Error("Cannot write the journal: the disk failed", { cause });
    }
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
  const why = messageOf(cause);
  return /another gateway/.test(why)
    ? 'another gateway uses it; set a different "nodes.journal" path for each node'
    : why;
}
