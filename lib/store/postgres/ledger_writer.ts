/** Appends entries to the chain of the ledger, which any node may extend. */
import { checkSum, sheetText } from "../entry_row.ts";
import type { Entry, KeptEntry, PriceSheet } from "../ledger.ts";
import type { Sql } from "./client.ts";
import { entryRow, type SheetRow } from "./ledger_rows.ts";
import { retryConflicts } from "./ledger_retry.ts";

/** Most tries of a write. A try fails if another node writes first. */
const MAX_TRIES = 1_000;

/**
 * Batch size from which on a write reads the head of the chain first if other nodes write as well, because a failed
 * write would be expensive.
 */
const LARGE_BATCH = 16;

/** A head that no ledger has: a write with it writes nothing and returns the real head. */
const NO_HEAD: Head = { seq: -1, check: 0 };

/** The last entry of the chain, which the next one follows. */
interface Head {
  seq: number;
  check: number;
}

/** Entries to write. */
interface Batch {
  /** For each given entry, whether it is new. */
  isNew: boolean[];
  /** The new entries. */
  kept: KeptEntry[];
  /** The new price sheets, with their versions. */
  sheets: SheetRow[];
}

/** Result of `ledger_write`. */
type Written =
  | { outcome: "written" | "renewed" }
  /** Another node has extended the chain, or ids exist already. */
  | {
    outcome: "moved";
    head_seq: bigint;
    head_check: bigint;
    entered: string[];
    sheets: SheetRow[];
    /** True if the chain still has the last entry that this node knows. */
    has_known: boolean;
  };

/**
 * Appends entries to the chain. The writer computes sequence numbers and check sums on the assumption that no other
 * node has written since its last write, and the database writes the entries only if that is so. This takes one round
 * trip, and no lock is held during a network delay. Calls must not overlap.
 */
export class ChainWriter {
  readonly #sql: Sql;
  #head = NO_HEAD;
  /** Versions of price sheets, by their canonical text. */
  readonly #versions = new Map<string, number>();
  /** True if other nodes write, too. */
  #isContended = false;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /**
   * Writes the new entries and ends their holds.
   * @param voidAt for lost requests: nothing is written unless the leases of all their holds had expired at this time
   * of the server's clock
   * @returns whether each entry is new; `undefined` if a lease had not expired, or a hold no longer exists
   */
  async enter(entries: readonly Entry[], voidAt?: bigint): Promise<boolean[] | undefined> {
    const ids = [...new Set(entries.map(({ id }) => id))];
    let entered: ReadonlySet<string> = new Set();
    if (this.#isContended && entries.length >= LARGE_BATCH) {
      const { seq } = this.#head;
      entered = this.#adoptHead(await this.#write({ ids, head: NO_HEAD }));
      this.#isContended = this.#head.seq !== seq;
    }
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const batch = this.#prepareBatch(entries, entered);
      const answer = await this.#write({ ids, head: this.#head, batch, voidAt });
      switch (answer.outcome) {
        case "renewed":
          return undefined;
        case "moved":
          this.#isContended ||= this.#head !== NO_HEAD;
          entered = this.#adoptHead(answer);
          break;
        case "written":
          this.#head = batch.kept.at(-1) ?? this.#head;
          for (const { version, ...sheet } of batch.sheets) this.#versions.set(sheetText(sheet), version);
          return batch.isNew;
      }
    }
    throw new Error("Cannot enter anything into the ledger: other nodes kept writing first");
  }

  async #write({ ids, head, batch, voidAt }: {
    ids: readonly string[];
    head: Head;
    batch?: Batch;
    voidAt?: bigint | undefined;
  }): Promise<Written> {
    const known = this.#versions.size;
    const [sheets, entries] = [batch?.sheets ?? [], batch?.kept.map(entryRow) ?? []].map((rows) =>
      JSON.stringify(rows)
    );
    const [answer] = await retryConflicts(() =>
      this.#sql<Written[]>`
        SELECT *, EXISTS (
          SELECT FROM entries WHERE seq = ${this.#head.seq} AND check_sum = ${this.#head.check}
        ) AS has_known
        FROM ledger_write(${head.seq}, ${head.check}, ${known}, ${JSON.stringify(ids)}::text::json,
          ${sheets ?? ""}::text::json, ${entries ?? ""}::text::json, ${voidAt ?? null})`
    );
    if (answer === undefined) throw new Error("Cannot enter anything into the ledger: the database returned nothing");
    return answer;
  }

  /** Adopts the head of the chain from a failed write. Returns the ids that exist already. */
  #adoptHead(answer: Written): ReadonlySet<string> {
    if (answer.outcome !== "moved") return new Set();
    if (this.#head !== NO_HEAD && !answer.has_known) {
      // After a failover, the server may lack what this node knows. The next write reads everything again.
      this.#versions.clear();
      this.#head = NO_HEAD;
    } else {
      this.#head = { seq: Number(answer.head_seq), check: Number(answer.head_check) };
      for (const { version, ...sheet } of answer.sheets) this.#versions.set(sheetText(sheet), version);
    }
    return new Set(answer.entered);
  }

  /** Prepares a write: gives each new entry its sequence number, price version and check sum. */
  #prepareBatch(entries: readonly Entry[], entered: ReadonlySet<string>): Batch {
    const batch: Batch = { isNew: [], kept: [], sheets: [] };
    const seen = new Set(entered);
    const added = new Map<string, number>();
    let { seq, check } = this.#head;
    for (const entry of entries) {
      const isNew = !seen.has(entry.id);
      seen.add(entry.id);
      batch.isNew.push(isNew);
      if (!isNew) continue;
      const unchecked = { ...entry, ...this.#versionOf(entry.sheet, { added, batch }), seq: ++seq };
      check = checkSum(unchecked, check);
      batch.kept.push({ ...unchecked, check });
    }
    return batch;
  }

  /** Returns the version of a price sheet. Adds the sheet to the batch if no version has these prices. */
  #versionOf(
    sheet: PriceSheet | undefined,
    { added, batch }: { added: Map<string, number>; batch: Batch },
  ): { priceVersion?: number } {
    if (sheet === undefined) return {};
    const text = sheetText(sheet);
    let version = this.#versions.get(text) ?? added.get(text);
    if (version === undefined) {
      version = this.#versions.size + added.size + 1;
      added.set(text, version);
      batch.sheets.push({ ...sheet, version });
    }
    return { priceVersion: version };
  }
}
