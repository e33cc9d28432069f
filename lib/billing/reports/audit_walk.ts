/** Walks through the entries of a ledger in order, for the audit. */
import { messageOf } from "../../errors.ts";
import type { KeptEntry, LedgerStart, LedgerStore, SumsHead } from "../../store/ledger.ts";
import { checkSum } from "../../store/entry_row.ts";
import { checkEntry } from "./audit_entry.ts";
import type { Findings } from "./audit_findings.ts";
import { DaySums } from "./day_sums.ts";
import { LaterSums } from "./audit_sums.ts";
import { UserSums } from "./audit_users.ts";

/** Entries read at a time: a few milliseconds of work. */
const PAGE = 1000;

/** Consecutive unreadable entries after which the walk ends. */
const MAX_UNREADABLE = 1000;

/** Parts of a comparison of sums with entries. */
export interface Comparison {
  walk: EntryWalk;
  findings: Findings;
  /** Lets other work run between two steps. */
  turn: () => Promise<void>;
}

/** One walk. It can continue after entries were added. */
export class EntryWalk {
  /** Sums of the entries read so far. */
  readonly sums = new DaySums();
  /** Sums of end users over the entries read. */
  readonly users = new UserSums();
  /** Sums that the store makes some time after the entries. */
  readonly later: LaterSums;
  /** Start of the walk: after the pruned entries. */
  readonly start: LedgerStart;
  readonly #findings: Findings;
  #seq: number;
  /** Check sum of the previous entry; `undefined` if that was unreadable. */
  #check: number | undefined;
  #entries = 0;
  #first: KeptEntry | undefined;
  #gapBefore: number | undefined;

  constructor(start: LedgerStart, { head, findings }: { head: SumsHead; findings: Findings }) {
    this.start = start;
    this.later = new LaterSums(head);
    this.#seq = start.seq;
    this.#check = start.check;
    this.#findings = findings;
  }

  /** Returns whether pruning up to `seq` may have removed entries before the walk reached them. */
  mayBeOvertaken(seq: number): boolean {
    if (seq <= this.start.seq) return false;
    return this.#first === undefined || (this.#gapBefore !== undefined && this.#gapBefore <= seq + 1);
  }

  /** Extent of the entries read so far. */
  extent(): { entries: number; first_seq: number | null; last_seq: number | null } {
    return {
      entries: this.#entries,
      first_seq: this.#first?.seq ?? null,
      last_seq: this.#first === undefined ? null : this.#seq,
    };
  }

  /** Continues to the end of the ledger. */
  async toEnd(ledger: Pick<LedgerStore, "entries">, turn: () => Promise<void>): Promise<void> {
    let isMore = true;
    while (isMore) {
      try {
        const page = await ledger.entries({ after: this.#seq, limit: PAGE });
        for (const entry of page) this.#take(entry);
        isMore = page.length === PAGE;
      } catch {
        isMore = await this.#pageByOnes(ledger);
      }
      if (isMore) await turn();
    }
  }

  /** Reads an unreadable page entry by entry. Returns false at the end of the ledger, or if too many are unreadable. */
  async #pageByOnes(ledger: Pick<LedgerStore, "entries">): Promise<boolean> {
    let unreadable = 0;
    for (let count = 0; count < PAGE || unreadable > 0; count++) {
      try {
        const [entry] = await ledger.entries({ after: this.#seq, limit: 1 });
        if (entry === undefined) return false;
        this.#take(entry);
        unreadable = 0;
      } catch (error) {
        this.#seq++;
        this.#check = undefined;
        const why = messageOf(error);
        this.#findings.add({ kind: "unreadable", seq: this.#seq, message: `cannot be read: ${why}` });
        if (++unreadable === MAX_UNREADABLE) return false;
      }
    }
    return true;
  }

  #take(entry: KeptEntry): void {
    const { seq, id, check } = entry;
    if (seq !== this.#seq + 1) {
      this.#gapBefore ??= seq;
      this.#findings.add({ kind: "gap", seq, id, message: `follows entry ${this.#seq}` });
    }
    if (this.#check !== undefined && checkSum(entry, this.#check) !== check) {
      this.#findings.add({
        kind: "check",
        seq,
        id,
        message: "the check sum does not match this entry and the previous one",
      });
    }
    // Frozen, so that the entries of the page that share the sheet parse its prices once.
    Object.freeze(entry.sheet);
    for (const { kind, message } of checkEntry(entry)) this.#findings.add({ kind, seq, id, message });
    this.sums.add(entry);
    this.users.add(entry);
    this.later.add(entry);
    this.#first ??= entry;
    this.#entries++;
    this.#seq = seq;
    this.#check = check;
  }
}
