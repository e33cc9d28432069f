// deno-lint-ignore-file require-await -- calls that throw must reject
/**
 * The ledger in a SQLite database, for the process that owns it. Only the owner writes entries, so the accounts
 * and the last entry in its memory always match the database.
 */
import type { DatabaseSync } from "node:sqlite";
import { Accounts, lostEntry, type ReadCharged } from "./accounts.ts";
import { type ChainedEntries, chainEntries, type ChainHead } from "../chain.ts";
import { assertEntry, assertHold, sheetText } from "../entry_row.ts";
import { runSlicedNow } from "../../scheduler.ts";
import type { Entry, LedgerStore, Spender, Spending } from "../ledger.ts";
import { type LedgerRows, openLedgerReader, openLedgerRows, readCharged, type Reports } from "./ledger.ts";
import { readNumber } from "./pragma.ts";
import { atomically, isBroken, whenFree } from "./transaction.ts";
import type { WalSync } from "./wal_sync.ts";

/** Maximum number of holds that one transaction records or voids, so that it stays short. */
const HOLDS_PER_TRANSACTION = 256;

/** Thrown within a transaction if a request has an entry already. */
const DUPLICATE_ID = new Error("Cannot enter a request twice");

/**
 * Opens the ledger of a migrated database. Requests that a previous owner left open are entered as lost.
 * @param parts `sync`: makes commits durable, absent for a database in memory
 */
export function openOwnedLedger(
  db: DatabaseSync,
  { sync, reports }: {
    sync?: Pick<WalSync, "checkPlace" | "durable" | "testRoom">;
    reports: Reports & { charged: ReadCharged };
  },
): LedgerStore {
  const rows = openLedgerRows(db);
  const writer = new Writer(db, rows);
  const { accounts } = writer;
  writer.enterAllAsLost();
  const assertPlace = async () => {
    const check = sync?.checkPlace();
    if (check !== undefined) await writer.confirm(check);
  };

  return {
    ...openLedgerReader(db, { rows, reports }),
    async hold(hold) {
      assertHold(hold);
      if (rows.entries.has(hold.id)) {
        throw new RangeError(`Cannot hold for "${hold.id}": the request is in the ledger already`);
      }
      const answer = accounts.hold(hold);
      if (answer.held) writer.recordLater(hold.id);
      return answer;
    },
    async spending(spenders) {
      for (const spender of spenders) {
        // The sums of a key are few and have an index, so they are read synchronously.
        if (spender.scope === "group") await accounts.loadCharged(spender, reports.charged);
      }
      return await runSlicedNow(readSpending(accounts, spenders));
    },
    async renew(ids, leaseUntil) {
      for (const id of accounts.renew(ids, leaseUntil)) writer.recordLater(id);
      try {
        while (writer.hasUnrecorded) writer.enter([]);
      } catch {
        // The leases in memory count. The file only informs other processes, and is updated with the next entries.
      }
    },
    release: (ids) => whenFree(() => writer.release(ids)),
    async append(entries) {
      for (const entry of entries) assertEntry(entry);
      await assertPlace();
      const isNew = await whenFree(() => entries.length === 0 ? writer.test() : writer.enter(entries));
      // A page may have room where an entry has none.
      if (entries.length === 0) await sync?.testRoom();
      // Needed for duplicates, too: the first entry of the request may not be synced yet.
      if (sync !== undefined) await writer.confirm(sync.durable());
      return isNew;
    },
    async expire(now) {
      if (accounts.overdue(now).length === 0) return [];
      await assertPlace();
      // Read again within the step, because holds may be renewed or end while it waits for the lock.
      const ids = await whenFree(() => {
        const overdue = accounts.overdue(now).slice(0, HOLDS_PER_TRANSACTION);
        const isNew = writer.enter(overdue.map((hold) => lostEntry(hold, now)));
        return overdue.filter((_, index) => isNew[index]).map(({ id }) => id);
      });
      if (ids.length > 0 && sync !== undefined) await writer.confirm(sync.durable());
      return ids;
    },
    holds: async () => accounts.open(),
  };
}

function* readSpending(accounts: Accounts, spenders: readonly Spender[]): Generator<void, Spending[]> {
  const spendings: Spending[] = [];
  for (const spender of spenders) {
    spendings.push(accounts.spending(spender));
    yield;
  }
  return spendings;
}

/** Writes entries in order, and keeps the accounts and the last entry in memory current. */
class Writer {
  readonly accounts: Accounts;
  readonly #db: DatabaseSync;
  readonly #rows: LedgerRows;
  #last: ChainHead;
  /** Versions of price sheets, by their canonical text. */
  #versions: Map<string, number>;
  /** Ids of open holds whose rows are missing or outdated. */
  readonly #unrecorded = new Set<string>();
  /** Ids of open holds that have a row. */
  readonly #recorded = new Set<string>();
  #failure: Error | undefined;

  constructor(db: DatabaseSync, rows: LedgerRows) {
    this.#db = db;
    this.#rows = rows;
    this.accounts = new Accounts((spender) => readCharged(rows, spender));
    this.#last = rows.entries.last(1)[0] ?? rows.start();
    this.#versions = new Map(rows.sheets.all().map(({ version, sheet }) => [sheetText(sheet), version]));
  }

  /** True if the next `enter` has holds to record. */
  get hasUnrecorded(): boolean {
    return this.#unrecorded.size > 0;
  }

  /** Records a hold in the next transaction. A hold that ends before that is never recorded. */
  recordLater(id: string): void {
    this.#unrecorded.add(id);
  }

  /** Enters the requests of all recorded holds as lost. They belong to a process that has ended. */
  enterAllAsLost(): void {
    for (let holds = this.#rows.holds.all(); holds.length > 0; holds = holds.slice(HOLDS_PER_TRANSACTION)) {
      const page = holds.slice(0, HOLDS_PER_TRANSACTION);
      for (const { id } of page) this.#recorded.add(id);
      this.enter(page.map((hold) => lostEntry(hold, hold.at)));
    }
  }

  /**
   * Writes new entries in one transaction, ends their holds, and records other holds. The commit is not synced yet.
   * @returns for each entry whether it is new
   */
  enter(entries: readonly Entry[]): boolean[] {
    if (this.#failure !== undefined) throw this.#failure;
    try {
      return this.#write(entries, this.#chain(entries));
    } catch (error) {
      if (error !== DUPLICATE_ID) throw error;
    }
    // Duplicates are rare, so the ids are looked up only now.
    const seen = new Set<string>();
    const isNew = (id: string) => seen.size < seen.add(id).size && !this.#rows.entries.has(id);
    return this.#write(entries, this.#chain(entries, isNew));
  }

  /** Writes a page as it is. @throws {Error} if the file cannot be written */
  test(): [] {
    if (this.#failure !== undefined) throw this.#failure;
    try {
      atomically(this.#db, () => this.#db.exec(`PRAGMA user_version = ${readNumber(this.#db, "user_version")}`));
    } catch (error) {
      if (isBroken(error)) this.#stopWriting(error);
      throw error;
    }
    return [];
  }

  /** Writes everything or nothing. @throws {Error} `DUPLICATE_ID` if a new entry has the id of an existing one */
  #write(entries: readonly Entry[], batch: ChainedEntries): boolean[] {
    const recordedIds = this.#unrecorded.size === 0 ? [] : this.#holdsToRecord(entries);
    const holds = recordedIds.map((id) => this.accounts.find(id)).filter((hold) => hold !== undefined);
    try {
      atomically(this.#db, () => {
        if (batch.kept.length > 0) {
          this.#assertLastEntry();
          for (const [version, sheet] of batch.sheets) this.#rows.sheets.insert(version, sheet);
          if (!this.#rows.entries.insert(batch.rows)) throw DUPLICATE_ID;
          this.#rows.sums.add(batch.kept);
          this.#rows.users.add(batch.kept);
        }
        for (const { id } of entries) {
          if (this.#recorded.has(id)) this.#rows.holds.delete(id);
        }
        for (const hold of holds) this.#rows.holds.put(hold);
      });
    } catch (error) {
      if (isBroken(error)) this.#stopWriting(error);
      throw error;
    }
    // After the commit, the updates of the memory must neither fail nor be interrupted.
    this.#last = batch.kept.at(-1) ?? this.#last;
    for (const [version, sheet] of batch.sheets) this.#versions.set(sheetText(sheet), version);
    for (const entry of batch.kept) this.accounts.enter(entry);
    for (const { id } of entries) this.#forget(id);
    for (const id of recordedIds) this.#unrecorded.delete(id);
    for (const { id } of holds) this.#recorded.add(id);
    return batch.isNew;
  }

  /** Ends holds without entries. The commit is not synced: after a crash, their requests become lost. */
  release(ids: readonly string[]): void {
    if (this.#failure !== undefined) throw this.#failure;
    const recorded = ids.filter((id) => this.#recorded.has(id));
    if (recorded.length > 0) atomically(this.#db, () => recorded.forEach((id) => this.#rows.holds.delete(id)));
    for (const id of ids) this.#forget(id);
  }

  #forget(id: string): void {
    this.accounts.release(id);
    this.#recorded.delete(id);
    this.#unrecorded.delete(id);
  }

  /** Checks within a transaction that the ledger still ends with the last known entry. */
  #assertLastEntry(): void {
    const { seq } = this.#last;
    const last = this.#rows.entries.lastSeq();
    if (last === seq) return;
    const cause = new Error(`Cannot enter anything into the ledger: it ends with entry ${last} instead of ${seq}`);
    this.#stopWriting(cause);
    throw cause;
  }

  /** Returns the ids of holds to record in this transaction, except those that end with its entries. */
  #holdsToRecord(entries: readonly Entry[]): string[] {
    const ending = new Set(entries.map(({ id }) => id));
    return [...this.#unrecorded].filter((id) => !ending.has(id)).slice(0, HOLDS_PER_TRANSACTION);
  }

  /** Waits for a sync or a check. If it fails, the state of the disk is unknown, and nothing more is written. */
  async confirm(sync: Promise<void>): Promise<void> {
    try {
      await sync;
    } catch (error) {
      this.#stopWriting(error);
      throw error;
    }
  }

  /** @param isNew returns whether a request has no entry yet; absent: none has */
  #chain(entries: readonly Entry[], isNew?: (id: string) => boolean): ChainedEntries {
    return chainEntries(entries, { head: this.#last, versions: this.#versions, isNew });
  }

  #stopWriting(cause: unknown): void {
    this.#failure ??= new Error("Cannot enter anything into the ledger: the disk or the file failed before", { cause });
  }
}
