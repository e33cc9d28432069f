/** Walks through the entries of a ledger in order, for the audit. */
import { messageOf } from "../../errors.ts";
import type { KeptEntry, LedgerStart, LedgerStore, SumsHead } from "../../store/ledger.ts";
import { checkSum } from "../../store/entry_row.ts";
import { checkEntry } from "./audit_entry.ts";
import type { Findings } from "./audit_findings.ts";
import { DaySums } from "./audit_days.ts";
import { LaterSums } from "./audit_sums.ts";
import { UserSums } from "./audit_users.ts";

/** Entries that are read at a time: a few milliseconds of work. */
const PAGE_ENTRIES = 1000;

/** Consecutive unreadable entries after which the walk ends. */
const MAX_UNREADABLE = 1000;

/** The state with which the parts of the audit compare sums with entries. */
export interface Comparison {
  walk: EntryWalk;
  findings: Findings;
  /** Lets other work of the process run; called between two steps. */
  pause: () => Promise<void>;
}

/** One walk through the entries. It can continue after entries were added. */
export class EntryWalk {
  /** Sums per day of the entries read so far. */
  readonly sums = new DaySums();
  /** Sums of end users' budgets of the entries read so far. */
  readonly users = new UserSums();
  /** Sums of the entries read so far, as the store makes them some time after the entries. */
  readonly later: LaterSums;
  /** Start of the walk: the last pruned entry. */
  readonly start: LedgerStart;
  readonly #findings: Findings;
  /** Seq of the last entry that was read. */
  #seq: number;
  /** Checksum of the last entry; `undefined` if it was unreadable. */
  #previousCheck: number | undefined;
  #entryCount = 0;
  #first: KeptEntry | undefined;
  /** Seq of the entry after the first gap; `undefined` if there is no gap. */
  #firstAfterGap: number | undefined;

  constructor(start: LedgerStart, { head, findings }: { head: SumsHead; findings: Findings }) {
    this.start = start;
    this.later = new LaterSums(head);
    this.#seq = start.seq;
    this.#previousCheck = start.check;
    this.#findings = findings;
  }

  /** Returns whether pruning up to `seq` may have removed entries before the walk reached them. */
  mayBeOvertaken(seq: number): boolean {
    if (seq <= this.start.seq) return false;
    return this.#first === undefined || (this.#firstAfterGap !== undefined && this.#firstAfterGap <= seq + 1);
  }

  /**
   * Returns the number of entries read so far, and the seqs of the first and the last one; `null` if there are none.
   */
  extent(): { entries: number; first_seq: number | null; last_seq: number | null } {
    return {
      entries: this.#entryCount,
      first_seq: this.#first?.seq ?? null,
      last_seq: this.#first === undefined ? null : this.#seq,
    };
  }

  /** Reads all further entries up to the end of the ledger. */
  async toEnd(ledger: Pick<LedgerStore, "entries">, pause: () => Promise<void>): Promise<void> {
    let isMore = true;
    while (isMore) {
      try {
        const page = await ledger.entries({ after: this.#seq, limit: PAGE_ENTRIES });
        for (const entry of page) this.#readEntry(entry);
        isMore = page.length === PAGE_ENTRIES;
      } catch {
        isMore = await this.#readOneByOne(ledger);
      }
      if (isMore) await pause();
    }
  }

  /**
   * Reads an unreadable page one entry at a time. Returns false at the end of the ledger, or if too many entries in a
   * row are unreadable.
   */
  async #readOneByOne(ledger: Pick<LedgerStore, "entries">): Promise<boolean> {
    let unreadable = 0;
    for (let count = 0; count < PAGE_ENTRIES || unreadable > 0; count++) {
      try {
        const [entry] = await ledger.entries({ after: this.#seq, limit: 1 });
        if (entry === undefined) return false;
        this.#readEntry(entry);
        unreadable = 0;
      } catch (error) {
        this.#seq++;
        this.#previousCheck = undefined;
        const reason = messageOf(error);
        this.#findings.add({ kind: "unreadable", seq: this.#seq, message: `cannot be read: ${reason}` });
        if (++unreadable === MAX_UNREADABLE) return false;
      }
    }
    return true;
  }

  #readEntry(entry: KeptEntry): void {
    const { seq, id, check } = entry;
    if (seq !== this.#seq + 1) {
      this.#firstAfterGap ??= seq;
      this.#findings.add({ kind: "gap", seq, id, message: `follows entry ${this.#seq}` });
    }
    if (this.#previousCheck !== undefined && checkSum(entry, this.#previousCheck) !== check) {
      this.#findings.add({
        kind: "check",
        seq,
        id,
        message: "the checksum does not match this entry and the previous one",
      });
    }
    // Frozen, so that the prices of a sheet that several entries of the page share are parsed once.
    Object.freeze(entry.sheet);
    for (const { kind, message } of checkEntry(entry)) this.#findings.add({ kind, seq, id, message });
    this.sums.add(entry);
    this.users.add(entry);
    this.later.add(entry);
    this.#first ??= entry;
    this.#entryCount++;
    this.#seq = seq;
    this.#previousCheck = check;
  }
}
