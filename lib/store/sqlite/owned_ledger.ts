// deno-lint-ignore-file require-await -- calls that throw must reject
/**
 * The ledger in the SQLite file, for the process that owns it. Only the owner writes entries, so its accounts and last
 * entry in memory always match the file.
 */
import type { DatabaseSync } from "node:sqlite";
import { Accounts, lostEntry, type ReadCharged } from "./accounts.ts";
import {
  assertEntry,
  assertHold,
  checkSum,
  type ColumnValue,
  entryFacts,
  entryValues,
  sheetText,
} from "../entry_row.ts";
import { runSlicedNow } from "../../scheduler.ts";
import type { Entry, KeptEntry, LedgerStore, PriceSheet, Spender, Spending } from "../ledger.ts";
import { type LedgerRows, openLedgerReader, openLedgerRows, readCharged, type Reports } from "./ledger.ts";
import { atomically, isBroken, whenFree } from "./transaction.ts";
import type { WalSync } from "./wal_sync.ts";

/** Most holds that one transaction records or voids, to keep it short. */
const HOLDS_AT_ONCE = 256;

/** Thrown within a transaction if an entry with the id exists already. */
const TAKEN = new Error("Cannot enter a request twice");

/**
 * Opens the ledger. Requests left open by a previous owner are entered as lost.
 * @param parts `sync`: absent for a database that is in memory alone
 */
export function openOwnedLedger(
  db: DatabaseSync,
  { sync, reports, charged }: { sync?: Pick<WalSync, "durable">; reports: Reports; charged: ReadCharged },
): LedgerStore {
  const rows = openLedgerRows(db);
  const writer = new Writer(db, rows);
  const { accounts } = writer;
  writer.loseAll();

  return {
    ...openLedgerReader(db, { rows, reports }),
    async hold(hold) {
      assertHold(hold);
      if (rows.entries.has(hold.id)) {
        throw new RangeError(`Cannot hold for "${hold.id}": the request is in the ledger already`);
      }
      const answer = accounts.hold(hold);
      if (answer.held) writer.note(hold.id);
      return answer;
    },
    async readAvailable(claim) {
      // A key's sums are few and indexed, so they are read synchronously.
      if (claim.scope === "group") await accounts.learn(claim, charged);
      return accounts.available(claim);
    },
    async spending(spenders) {
      for (const spender of spenders) {
        if (spender.scope === "group") await accounts.learn(spender, charged);
      }
      return await runSlicedNow(readSpending(accounts, spenders));
    },
    async renew(ids, leaseUntil) {
      for (const id of accounts.renew(ids, leaseUntil)) writer.note(id);
      try {
        while (writer.hasNotes) await whenFree(() => writer.enter([]));
      } catch {
        // Leases live in memory. The file only informs other processes, and is updated with the next entries.
      }
    },
    async append(entries) {
      for (const entry of entries) assertEntry(entry);
      const isNew = await whenFree(() => writer.enter(entries));
      // For duplicates too: the first entry may not be synced yet.
      if (sync !== undefined) await writer.confirm(sync.durable());
      return isNew;
    },
    async expire(now) {
      const ids: string[] = [];
      while (accounts.overdue(now).length > 0) {
        // Read within the step: while it waits for the lock, holds may be renewed or end.
        ids.push(
          ...await whenFree(() => {
            const overdue = accounts.overdue(now).slice(0, HOLDS_AT_ONCE);
            const isNew = writer.enter(overdue.map((hold) => lostEntry(hold, now)));
            return overdue.filter((_, index) => isNew[index]).map(({ id }) => id);
          }),
        );
      }
      if (ids.length > 0 && sync !== undefined) await writer.confirm(sync.durable());
      return ids;
    },
    holds: async () => accounts.open(),
  };
}

function* readSpending(accounts: Accounts, spenders: readonly Spender[]): Generator<void, Spending[]> {
  const found: Spending[] = [];
  for (const spender of spenders) {
    found.push(accounts.spending(spender));
    yield;
  }
  return found;
}

/** Writes entries in order, and updates the process's memory of them. */
class Writer {
  readonly accounts: Accounts;
  readonly #db: DatabaseSync;
  readonly #rows: LedgerRows;
  #last: { seq: number; check: number };
  /** Versions of price sheets, by text. */
  #versions: Map<string, number>;
  /** Open holds whose rows are missing or outdated. */
  readonly #unnoted = new Set<string>();
  /** Open holds with rows. */
  readonly #noted = new Set<string>();
  #broken: Error | undefined;

  constructor(db: DatabaseSync, rows: LedgerRows) {
    this.#db = db;
    this.#rows = rows;
    this.accounts = new Accounts((spender) => readCharged(rows, spender));
    this.#last = rows.entries.last(1)[0] ?? rows.start();
    this.#versions = new Map(rows.sheets.all().map(({ version, sheet }) => [sheetText(sheet), version]));
  }

  /** True while `enter` has holds to record. */
  get hasNotes(): boolean {
    return this.#unnoted.size > 0;
  }

  /** Records the hold with the next transaction. A hold that ends before leaves no trace. */
  note(id: string): void {
    this.#unnoted.add(id);
  }

  /** Enters the requests of all holds in the file as lost. They belong to a process that has ended. */
  loseAll(): void {
    for (let holds = this.#rows.holds.all(); holds.length > 0; holds = holds.slice(HOLDS_AT_ONCE)) {
      const batch = holds.slice(0, HOLDS_AT_ONCE);
      for (const { id } of batch) this.#noted.add(id);
      this.enter(batch.map((hold) => lostEntry(hold, hold.at)));
    }
  }

  /**
   * Writes new entries in one transaction, ends their holds, and records other holds. Not synced yet.
   * @returns whether each entry is new
   */
  enter(entries: readonly Entry[]): boolean[] {
    if (this.#broken !== undefined) throw this.#broken;
    try {
      return this.#write(entries, this.#prepare(entries));
    } catch (error) {
      if (error !== TAKEN) throw error;
    }
    // Rare, so only now each id is looked up.
    const seen = new Set<string>();
    const isNew = (id: string) => seen.size < seen.add(id).size && !this.#rows.entries.has(id);
    return this.#write(entries, this.#prepare(entries, isNew));
  }

  /** Writes everything or nothing. @throws {Error} `TAKEN` if the id of a new entry exists already */
  #write(entries: readonly Entry[], batch: Batch): boolean[] {
    const notes = this.#unnoted.size === 0 ? [] : this.#takeNotes(entries);
    const holds = notes.map((id) => this.accounts.find(id)).filter((hold) => hold !== undefined);
    try {
      atomically(this.#db, () => {
        if (batch.kept.length > 0) {
          this.#assertLast();
          for (const [version, sheet] of batch.sheets) this.#rows.sheets.insert(version, sheet);
          if (!this.#rows.entries.insert(batch.rows)) throw TAKEN;
          this.#rows.sums.add(batch.kept);
          this.#rows.users.add(batch.kept);
        }
        for (const { id } of entries) {
          if (this.#noted.has(id)) this.#rows.holds.delete(id);
        }
        for (const hold of holds) this.#rows.holds.put(hold);
      });
    } catch (error) {
      if (isBroken(error)) this.#break(error);
      throw error;
    }
    // Committed: the updates of memory must neither fail nor be interleaved.
    this.#last = batch.kept.at(-1) ?? this.#last;
    for (const [version, sheet] of batch.sheets) this.#versions.set(sheetText(sheet), version);
    for (const entry of batch.kept) this.accounts.enter(entry);
    for (const { id } of entries) {
      this.accounts.release(id);
      this.#noted.delete(id);
      this.#unnoted.delete(id);
    }
    for (const id of notes) this.#unnoted.delete(id);
    for (const { id } of holds) this.#noted.add(id);
    return batch.isNew;
  }

  /** Checks within a transaction that the chain still ends with the last known entry. */
  #assertLast(): void {
    const { seq } = this.#last;
    const last = this.#rows.entries.lastSeq();
    if (last === seq) return;
    const cause = new Error(`Cannot enter anything into the ledger: it ends with entry ${last} instead of ${seq}`);
    this.#break(cause);
    throw cause;
  }

  /** Holds to record in this transaction, except those that end with its entries. */
  #takeNotes(entries: readonly Entry[]): string[] {
    const ending = new Set(entries.map(({ id }) => id));
    return [...this.#unnoted].filter((id) => !ending.has(id)).slice(0, HOLDS_AT_ONCE);
  }

  /** Waits for a sync. If it fails, the state of the disk is unknown, and nothing more is entered. */
  async confirm(durable: Promise<void>): Promise<void> {
    try {
      await durable;
    } catch (error) {
      this.#break(error);
      throw error;
    }
  }

  /** Gives each new entry its sequence number, price version and check sum. @param isNew absent: all are */
  #prepare(entries: readonly Entry[], isNew?: (id: string) => boolean): Batch {
    const batch: Batch = { isNew: [], kept: [], rows: [], sheets: new Map() };
    let { seq, check } = this.#last;
    const added = new Map<string, number>();
    for (const entry of entries) {
      const isKept = isNew === undefined || isNew(entry.id);
      batch.isNew.push(isKept);
      if (!isKept) continue;
      const text = entry.sheet === undefined ? undefined : sheetText(entry.sheet);
      let priceVersion = text === undefined ? undefined : this.#versions.get(text) ?? added.get(text);
      if (entry.sheet !== undefined && text !== undefined && priceVersion === undefined) {
        priceVersion = this.#versions.size + batch.sheets.size + 1;
        added.set(text, priceVersion);
        batch.sheets.set(priceVersion, entry.sheet);
      }
      const stored: KeptEntry = { ...entry, priceVersion, seq: ++seq, check };
      const facts = entryFacts(stored);
      check = stored.check = checkSum(stored, check, facts);
      batch.kept.push(stored);
      batch.rows.push(entryValues(stored, facts));
    }
    return batch;
  }

  #break(cause: unknown): void {
    this.#broken ??= new Error("Cannot enter anything into the ledger: the disk or the file failed before", { cause });
  }
}

/** Entries to write. */
interface Batch {
  /** For each given entry. */
  isNew: boolean[];
  /** The new entries. */
  kept: KeptEntry[];
  /** Their rows. */
  rows: ColumnValue[][];
  /** The new price sheets, by version. */
  sheets: Map<number, PriceSheet>;
}
