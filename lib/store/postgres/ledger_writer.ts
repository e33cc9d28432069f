/** Appends entries to the chain of the ledger, which any node may extend. */
import { type ChainedEntries, chainEntries, type ChainHead } from "../chain.ts";
import { ENTRY_COLUMNS, sheetText } from "../entry_row.ts";
import type { Entry } from "../ledger.ts";
import type { Sql } from "./client.ts";
import type { SheetRow } from "./ledger_rows.ts";
import { retryConflicts } from "./ledger_retry.ts";

/** Maximum number of tries of a write. A try fails if another node writes first. */
const MAX_TRIES = 1_000;

/**
 * Batch size from which on a write reads the head of the chain first if other nodes write as well, because a failed
 * write would be expensive.
 */
const LARGE_BATCH = 16;

/** A head that no ledger has: a write with it writes nothing and returns the real head. */
const NO_HEAD: ChainHead = { seq: -1, check: 0 };

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
    /** True if the chain still has the last entry that this node knows, or has pruned it. */
    has_known: boolean;
  };

/**
 * Appends entries to the chain. The writer computes sequence numbers and checksums on the assumption that no other
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

  readonly #rolledBack: () => void;

  /** @param rolledBack called when the database turns out to have lost entries */
  constructor(sql: Sql, rolledBack: () => void) {
    this.#sql = sql;
    this.#rolledBack = rolledBack;
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
      const seen = new Set(entered);
      const isNew = (id: string) => seen.size < seen.add(id).size;
      const batch = chainEntries(entries, { head: this.#head, versions: this.#versions, isNew });
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
          for (const [version, sheet] of batch.sheets) this.#versions.set(sheetText(sheet), version);
          return batch.isNew;
      }
    }
    throw new Error("Cannot enter anything into the ledger: other nodes kept writing first");
  }

  async #write({ ids, head, batch, voidAt }: {
    ids: readonly string[];
    head: ChainHead;
    batch?: ChainedEntries;
    voidAt?: bigint | undefined;
  }): Promise<Written> {
    const known = this.#versions.size;
    const sheets = [...batch?.sheets ?? []].map(([version, sheet]) => ({ ...sheet, version }));
    const entries = (batch?.rows ?? []).map((row) =>
      Object.fromEntries(ENTRY_COLUMNS.map((name, index) => [name, row[index]]))
    );
    const [answer] = await retryConflicts(() =>
      this.#sql<Written[]>`
        SELECT *, EXISTS (
          SELECT FROM entries WHERE seq = ${this.#head.seq} AND check_sum = ${this.#head.check}
          UNION ALL SELECT FROM ledger_start WHERE seq >= ${this.#head.seq}
        ) AS has_known
        FROM ledger_write(${head.seq}, ${head.check}, ${known}, ${JSON.stringify(ids)}::text::json,
          ${JSON.stringify(sheets)}::text::json, ${JSON.stringify(entries)}::text::json, ${voidAt ?? null})`
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
      this.#rolledBack();
    } else {
      this.#head = { seq: Number(answer.head_seq), check: Number(answer.head_check) };
      for (const { version, ...sheet } of answer.sheets) this.#versions.set(sheetText(sheet), version);
    }
    return new Set(answer.entered);
  }
}
