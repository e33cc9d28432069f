/** Writes entries to the chain, which any node may extend. */
import { checkSum, sheetText } from "../entry_row.ts";
import type { Entry, KeptEntry, PriceSheet } from "../ledger.ts";
import type { Sql } from "./client.ts";
import { entryRow, type SheetRow } from "./ledger_rows.ts";
import { retryConflicts } from "./ledger_retry.ts";

/** Writes in a row that lost against another node before an error is returned. */
const MAX_TRIES = 1_000;

/**
 * Batch size from which a contended write reads the head of the chain first, because a failed write would be expensive.
 */
const MANY = 16;

/** A head that no ledger has: a write with it fails and returns the real head. */
const NOWHERE: Head = { seq: -1, check: 0 };

/** The last entry, which the next one builds on. */
interface Head {
  seq: number;
  check: number;
}

/** Entries to write. */
interface Batch {
  /** For each given entry. */
  isNew: boolean[];
  /** The new entries. */
  kept: KeptEntry[];
  /** The new price sheets, with their versions. */
  sheets: SheetRow[];
}

/** Result of `ledger_write`. */
type Written =
  | { outcome: "written" | "renewed" }
  /** Another node extended the chain, or ids exist already. */
  | {
    outcome: "moved";
    head_seq: bigint;
    head_check: bigint;
    entered: string[];
    sheets: SheetRow[];
    sheet_count: bigint;
  };

/**
 * Appends entries to the chain. The writer assumes that no other node has written since its last write, computes the
 * entries, and the database writes them only if the assumption holds: one round trip, and no lock is held during a
 * network delay. Calls wait for earlier calls.
 */
export class ChainWriter {
  readonly #sql: Sql;
  #head = NOWHERE;
  /** Versions of price sheets, by text. */
  readonly #versions = new Map<string, number>();
  /** True if other nodes write as well. */
  #contended = false;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /**
   * Writes the new entries and ends their holds.
   * @param voidAt for lost requests: they are entered only if the leases of all their holds had expired at that time of
   * the server's clock
   * @returns whether each entry is new; `undefined` if a lease had not expired, or a hold no longer exists
   */
  async enter(entries: readonly Entry[], voidAt?: bigint): Promise<boolean[] | undefined> {
    const ids = [...new Set(entries.map(({ id }) => id))];
    let entered: ReadonlySet<string> = new Set();
    if (this.#contended && entries.length >= MANY) {
      const { seq } = this.#head;
      entered = this.#learn(await this.#write({ ids, head: NOWHERE }));
      this.#contended = this.#head.seq !== seq;
    }
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const batch = this.#prepare(entries, entered);
      const answer = await this.#write({ ids, head: this.#head, batch, voidAt });
      switch (answer.outcome) {
        case "renewed":
          return undefined;
        case "moved":
          this.#contended ||= this.#head !== NOWHERE;
          entered = this.#learn(answer);
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
        SELECT * FROM ledger_write(${head.seq}, ${head.check}, ${known}, ${JSON.stringify(ids)}::text::json,
          ${sheets ?? ""}::text::json, ${entries ?? ""}::text::json, ${voidAt ?? null})`
    );
    if (answer === undefined) throw new Error("Cannot enter anything into the ledger: the database returned nothing");
    return answer;
  }

  /** Adopts the head of the chain. Returns the ids that exist already. */
  #learn(answer: Written): ReadonlySet<string> {
    if (answer.outcome !== "moved") return new Set();
    this.#head = { seq: Number(answer.head_seq), check: Number(answer.head_check) };
    for (const { version, ...sheet } of answer.sheets) this.#versions.set(sheetText(sheet), version);
    if (this.#versions.size !== Number(answer.sheet_count)) {
      // A failover to a server that lacks what this node wrote last: everything is read again.
      this.#versions.clear();
      this.#head = NOWHERE;
    }
    return new Set(answer.entered);
  }

  /** Gives each new entry its sequence number, price version and check sum. */
  #prepare(entries: readonly Entry[], entered: ReadonlySet<string>): Batch {
    const batch: Batch = { isNew: [], kept: [], sheets: [] };
    const seen = new Set(entered);
    const added = new Map<string, number>();
    let { seq, check } = this.#head;
    for (const entry of entries) {
      const isNew = !seen.has(entry.id);
      seen.add(entry.id);
      batch.isNew.push(isNew);
      if (!isNew) continue;
      const placed = { ...entry, ...this.#priced(entry.sheet, { added, batch }), seq: ++seq };
      check = checkSum(placed, check);
      batch.kept.push({ ...placed, check });
    }
    return batch;
  }

  /** Returns the version of a price sheet, which is new if no version has these prices. */
  #priced(
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
