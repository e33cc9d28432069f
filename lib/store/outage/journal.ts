/**
 * The journal of a node: a file of entries that wait for an unreachable store. An entry is on the disk before its
 * request ends. The entries go into the store in order when it is back. A process that ends in the meantime reads them
 * at its next start.
 */
import { messageOf } from "../../errors.ts";
import type { Entry } from "../ledger.ts";
import { StoreError, type StoreLine } from "../store.ts";
import { type JournalFile, MAX_LINE_BYTES, openJournalFile } from "./journal_file.ts";
import { HEADER, readRecord, writeRecord } from "./journal_record.ts";

/** Parts of a journal. */
export interface JournalParts {
  /** Most entries that wait while more work may begin. What runs by then still has room for a tenth more. */
  maxEntries: number;
  /** Most bytes of the file; absent: 1 GiB. */
  maxBytes?: number;
  log: (line: StoreLine) => void;
}

/** Entries that wait. */
export interface Journal {
  /** Number of waiting entries. */
  readonly waiting: number;
  /** True while more requests may begin: the journal has room, and the disk works. */
  readonly hasRoom: boolean;
  /** Lets entries wait: all of them are on the disk when it resolves, none is in the journal where it rejects. */
  append(entries: readonly Entry[]): Promise<void>;
  /**
   * Passes the waiting entries to `enter`, in order and in batches, until none wait; then the file is empty. Rejects as
   * `enter` does: those entries stay. After a crash, entries may be passed again. Only one call at a time.
   */
  play(enter: (entries: Entry[]) => Promise<void>): Promise<void>;
  /** Keeps entries that the store will never take in a file of their own, beside. */
  putAside(entries: readonly Entry[]): Promise<void>;
  /** Closes the file after the current work. Waiting entries stay in it. */
  close(): Promise<void>;
}

const MAX_BYTES = 1024 * 1024 * 1024;

/** Entries handed out at a time; those that came together go together. */
const AT_ONCE = 256;

/** Share of the entries above the most: for requests that run when it is full. */
const RESERVE = 0.1;

const HEADER_BYTES = new TextEncoder().encode(HEADER);

/**
 * Opens the journal in a file, with what an earlier process left in it.
 * @throws {StoreError} where it cannot be opened, another process has it, or it is no journal of this version
 */
export async function openJournal(path: string, parts: JournalParts): Promise<Journal> {
  const file = openJournalFile(path);
  try {
    const { waiting, end, damaged } = await examine(file);
    if (damaged > 0) {
      const kept = await keepCopy(path);
      parts.log({ level: "error", event: "journal_damaged", path, kept, records: damaged });
    }
    if (end < file.length) {
      // The process or the machine ended during this write: the entry was never confirmed.
      parts.log({ level: "warn", event: "journal_truncated", path, bytes: file.length - end });
      await file.cut(end);
    }
    if (file.length === 0) await file.write(HEADER_BYTES);
    if (waiting > 0) parts.log({ level: "info", event: "journal_found", path, entries: waiting });
    return new FileJournal(file, { ...parts, path, waiting });
  } catch (cause) {
    file.close();
    const why = messageOf(cause);
    throw new StoreError(`Cannot open the journal "${path}": ${why}`, { cause });
  }
}

class FileJournal implements Journal {
  readonly #file: JournalFile;
  readonly #path: string;
  readonly #maxEntries: number;
  readonly #maxBytes: number;
  readonly #log: JournalParts["log"];
  #waiting: number;
  /** Offset of the first waiting entry. */
  #from = HEADER_BYTES.length;
  /** One use of the file after the other. */
  #last: Promise<unknown> = Promise.resolve();

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

  get hasRoom(): boolean {
    return this.#file.broken === undefined && this.#waiting < this.#maxEntries &&
      this.#file.length < this.#maxBytes * (1 - RESERVE);
  }

  append(entries: readonly Entry[]): Promise<void> {
    if (entries.length === 0) return this.#probe();
    return this.#inTurn(async () => {
      const line = new TextEncoder().encode(writeRecord(entries));
      const isFull = this.#waiting + entries.length > this.#maxEntries * (1 + RESERVE) ||
        this.#file.length + line.length > this.#maxBytes || line.length > MAX_LINE_BYTES;
      if (isFull) throw new Error("Cannot let entries wait: the journal is full");
      await this.#file.write(line);
      this.#waiting += entries.length;
    });
  }

  async play(enter: (entries: Entry[]) => Promise<void>): Promise<void> {
    for (;;) {
      const next = await this.#inTurn(() => this.#next());
      if (next === undefined) return;
      await enter(next.entries);
      this.#from = next.end;
      this.#waiting -= next.entries.length;
    }
  }

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

  async close(): Promise<void> {
    await this.#inTurn(() => Promise.resolve(this.#file.close()));
  }

  /** The next entries; `undefined` where none waits, and the file is empty again. */
  async #next(): Promise<{ entries: Entry[]; end: number } | undefined> {
    const entries: Entry[] = [];
    let end = this.#from;
    for await (const line of this.#file.lines(this.#from)) {
      const record = line.text === undefined ? undefined : readRecord(line.text);
      if (record === undefined) {
        this.#log({ level: "error", event: "journal_damaged", path: this.#path, at: end, bytes: line.end - end });
      } else if (entries.length > 0 && entries.length + record.length > AT_ONCE) break;
      entries.push(...record ?? []);
      end = line.end;
      if (entries.length >= AT_ONCE) break;
    }
    if (entries.length > 0) return { entries, end };
    // What stays in a file that is broken comes again at the next start, and is not new then.
    const canCut = this.#file.broken === undefined && this.#file.length > HEADER_BYTES.length;
    if (canCut) await this.#file.cut(HEADER_BYTES.length);
    this.#from = this.#file.length;
    this.#waiting = 0;
    return undefined;
  }

  #probe(): Promise<void> {
    return this.hasRoom ? Promise.resolve() : Promise.reject(new Error("Cannot let entries wait: there is no room"));
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work, work);
    this.#last = done;
    return done;
  }
}

/** Counts the entries of a file, its damaged lines, and the offset behind its last whole line. */
async function examine(file: JournalFile): Promise<{ waiting: number; end: number; damaged: number }> {
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
  // Less than the first line is what a crash left of a file that was just made.
  if (end === 0 && file.length >= HEADER_BYTES.length) throw notAJournal();
  return { waiting, end, damaged };
}

function notAJournal(): Error {
  return new Error("it is no journal, or that of another version of Sluice");
}

/** Keeps a copy of the damaged file for a later inspection. Returns its path. */
async function keepCopy(path: string): Promise<string> {
  const kept = `${path}.damaged-${crypto.randomUUID()}`;
  await Deno.copyFile(path, kept);
  return kept;
}
