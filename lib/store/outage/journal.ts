/**
 * The journal of a node: a file of entries that wait for an unreachable store. An entry is synced to the disk before
 * its request ends. When the store can be reached again, the entries are written to it in order. A restarted process
 * continues with the file.
 */
import type { Log } from "../../log_events.ts";
import { messageOf } from "../../errors.ts";
import { createSerializer } from "../../scheduler.ts";
import type { Entry } from "../ledger.ts";
import { StoreError } from "../store.ts";
import { type JournalFile, MAX_LINE_BYTES, openJournalFile } from "./journal_file.ts";
import { HEADER, readRecord, writeRecord } from "./journal_record.ts";

/** Options of a journal. */
export interface JournalParts {
  /** Number of waiting entries up to which new requests may begin. Running requests may add another tenth. */
  maxEntries: number;
  /** Maximum number of bytes of the file; absent: 1 GiB. */
  maxBytes?: number;
  log: Log;
}

/** Maximum number of bytes of the file by default. */
const MAX_BYTES = 1024 * 1024 * 1024;

/** Entries per batch when the journal is written to the store; those of one append stay together. */
const BATCH_ENTRIES = 256;

/** Share of the maximum that is reserved for running requests. */
const RESERVED_SHARE = 0.1;

/** Bytes of a test write: more than most entries have, and no complete line, which a restart after a crash removes. */
const TEST_BYTES = new Uint8Array(4096);

const HEADER_BYTES = new TextEncoder().encode(HEADER);

/**
 * Opens a journal with the entries of an earlier process.
 * @throws {StoreError} if it cannot be opened, another process has it, or the file is not a journal of this version
 */
export async function openJournal(path: string, parts: JournalParts): Promise<Journal> {
  const file = openJournalFile(path);
  try {
    const { waiting, end, damaged } = await inspectFile(file);
    if (damaged > 0) {
      const kept = await keepCopy(path);
      parts.log({ level: "error", event: "journal_damaged", path, kept, records: damaged });
    }
    if (end < file.length) {
      // The process crashed during this write, so the entry was never confirmed.
      parts.log({ level: "warn", event: "journal_truncated", path, bytes: file.length - end });
      await file.cut(end);
    }
    if (file.length === 0) await file.write(HEADER_BYTES);
    if (waiting > 0) parts.log({ level: "info", event: "journal_found", path, entries: waiting });
    return new Journal(file, { ...parts, path, waiting });
  } catch (cause) {
    file.close();
    const why = messageOf(cause);
    throw new StoreError(`Cannot open the journal "${path}": ${why}`, { cause });
  }
}

/** An open journal. */
export class Journal {
  readonly #file: JournalFile;
  readonly #path: string;
  readonly #maxEntries: number;
  readonly #maxBytes: number;
  readonly #log: JournalParts["log"];
  #waiting: number;
  /** Offset of the first waiting entry in the file. */
  #firstOffset = HEADER_BYTES.length;
  /** Runs each use of the file after the one before. */
  readonly #inTurn = createSerializer();

  constructor(
    file: JournalFile,
    { path, waiting, maxEntries, maxBytes = MAX_BYTES, log }: JournalParts & { path: string; waiting: number },
  ) {
    this.#file = file;
    this.#path = path;
    this.#waiting = waiting;
    this.#maxEntries = maxEntries;
    this.#maxBytes = maxBytes;
    this.#log = log;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** True if more requests may begin: the journal has room, and its disk works. */
  get hasRoom(): boolean {
    return this.#file.broken === undefined && this.#waiting < this.#maxEntries &&
      this.#file.length < this.#maxBytes * (1 - RESERVED_SHARE);
  }

  /**
   * Appends entries. They are synced when the promise resolves; if it rejects, none is in the journal. Without entries,
   * tests whether the file can be written.
   */
  append(entries: readonly Entry[]): Promise<void> {
    return this.#inTurn(async () => {
      const isTest = entries.length === 0;
      const line = isTest ? TEST_BYTES : new TextEncoder().encode(writeRecord(entries));
      const { length } = this.#file;
      const isFull = this.#waiting + entries.length > this.#maxEntries * (1 + RESERVED_SHARE) ||
        this.#file.length + line.length > this.#maxBytes || line.length > MAX_LINE_BYTES;
      if (isFull) throw new Error("Cannot queue entries: the journal is full");
      await this.#file.write(line);
      if (isTest) await this.#file.cut(length);
      this.#waiting += entries.length;
    });
  }

  /**
   * Passes the waiting entries to `enter`, in order and in batches, until the file is empty. If `enter` rejects, so
   * does this, and the entries of that batch stay. After a crash, entries may be passed a second time. Must not be
   * called while an earlier call is in progress.
   */
  async play(enter: (entries: Entry[]) => Promise<void>): Promise<void> {
    for (;;) {
      const next = await this.#inTurn(() => this.#next());
      if (next === undefined) return;
      await enter(next.entries);
      this.#firstOffset = next.end;
      this.#waiting -= next.entries.length;
    }
  }

  /** Appends entries that the store permanently rejects to a separate file, with the suffix `.refused`. */
  async putAside(entries: readonly Entry[]): Promise<void> {
    const path = `${this.#path}.refused`;
    const file = await Deno.open(path, { create: true, append: true, mode: 0o600 });
    try {
      const line = new TextEncoder().encode(writeRecord(entries));
      for (let at = 0; at < line.length;) at += await file.write(line.subarray(at));
      await file.syncData();
    } finally {
      file.close();
    }
  }

  /** Closes the file after the current use. Waiting entries stay in it. */
  async close(): Promise<void> {
    await this.#inTurn(() => Promise.resolve(this.#file.close()));
  }

  /** Reads the next batch. If nothing waits any more, empties the file and returns `undefined`. */
  async #next(): Promise<{ entries: Entry[]; end: number } | undefined> {
    const entries: Entry[] = [];
    let end = this.#firstOffset;
    for await (const line of this.#file.lines(this.#firstOffset)) {
      const record = line.text === undefined ? undefined : readRecord(line.text);
      if (record === undefined) {
        this.#log({ level: "error", event: "journal_damaged", path: this.#path, at: end, bytes: line.end - end });
      } else if (entries.length > 0 && entries.length + record.length > BATCH_ENTRIES) break;
      entries.push(...record ?? []);
      end = line.end;
      if (entries.length >= BATCH_ENTRIES) break;
    }
    if (entries.length > 0) return { entries, end };
    // A broken file cannot be emptied. Its entries are replayed at the next start, and are duplicates then.
    const canCut = this.#file.broken === undefined && this.#file.length > HEADER_BYTES.length;
    if (canCut) await this.#file.cut(HEADER_BYTES.length);
    this.#firstOffset = this.#file.length;
    this.#waiting = 0;
    return undefined;
  }
}

/**
 * Counts the entries and damaged lines of a file, and finds the end of its last complete line.
 * @throws {Error} if it is not a journal
 */
async function inspectFile(file: JournalFile): Promise<{ waiting: number; end: number; damaged: number }> {
  let [waiting, end, damaged] = [0, 0, 0];
  for await (const line of file.lines(0)) {
    if (end === 0) {
      if (`${line.text}\n` !== HEADER) throw notAJournal();
    } else {
      const entries = line.text === undefined ? undefined : readRecord(line.text);
      waiting += entries?.length ?? 0;
      damaged += entries === undefined ? 1 : 0;
    }
    end = line.end;
  }
  // A crash while the file was created may have left it shorter than its header.
  if (end === 0 && file.length >= HEADER_BYTES.length) throw notAJournal();
  return { waiting, end, damaged };
}

function notAJournal(): Error {
  return new Error("it is not a journal, or was written by another version of Sluice");
}

/** Copies the damaged file for inspection. Returns the path of the copy. */
async function keepCopy(path: string): Promise<string> {
  const kept = `${path}.damaged-${crypto.randomUUID()}`;
  await Deno.copyFile(path, kept);
  return kept;
}
