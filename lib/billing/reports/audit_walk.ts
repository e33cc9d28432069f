/** The walk of an audit through the entries of a ledger, in their order. */
import { messageOf } from "../../errors.ts";
import type { KeptEntry, LedgerStart, LedgerStore } from "../../store/ledger.ts";
import { checkSum } from "../../store/entry_row.ts";
import { checkEntry } from "./audit_entry.ts";
import type { Findings } from "./audit_findings.ts";
import { DaySums } from "./day_sums.ts";

/** Entries read between two turns of the event loop: a few milliseconds of work. */
const PAGE = 1000;

/** Entries in a row that cannot be read, after which the rest is given up. */
const MOST_UNREADABLE = 1000;

/** One walk. It can go on when entries have been added. */
export class EntryWalk {
  /** Sums over the entries seen. */
  readonly sums = new DaySums();
  /** Start of the walk: behind the pruned entries. */
  readonly start: LedgerStart;
  readonly #findings: Findings;
  #seq: number;
  /** Check sum of the entry before; `undefined` where that could not be read. */
  #check: number | undefined;
  #entries = 0;
  #first: KeptEntry | undefined;
  #gapBefore: number | undefined;

  constructor(start: LedgerStart, findings: Findings) {
    this.start = start;
    this.#seq = start.seq;
    this.#check = start.check;
    this.#findings = findings;
  }

  /** Returns whether pruning up to `seq` may have removed entries before the walk reached them. */
  mayBeOvertaken(seq: number): boolean {
    if (seq <= this.start.seq) return false;
    return this.#first === undefined || (this.#gapBefore !== undefined && this.#gapBefore <= seq + 1);
  }

  /** Extent of the walk so far. */
  extent(): { entries: number; first_seq: number | null; last_seq: number | null } {
    return {
      entries: this.#entries,
      first_seq: this.#first?.seq ?? null,
      last_seq: this.#first === undefined ? null : this.#seq,
    };
  }

  /** Goes on to the end of the ledger. */
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

  /** Goes through a page that cannot be read as a whole. False at the end of the ledger, and where nothing can be read. */
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
        if (++unreadable === MOST_UNREADABLE) return false;
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
        message: "the check sum does not fit the entry and the one before",
      });
    }
    // The prices of a frozen sheet are worked out once for all entries of the page that share it.
    Object.freeze(entry.sheet);
    for (const { kind, message } of checkEntry(entry)) this.#findings.add({ kind, seq, id, message });
    this.sums.add(entry);
    this.#first ??= entry;
    this.#entries++;
    this.#seq = seq;
    this.#check = check;
  }
}
