/** Reads and writes the entries, price sheets and holds of a SQLite database. */
import type { DatabaseSync } from "node:sqlite";
import {
  AMOUNT_COLUMNS,
  type ColumnValue,
  ENTRY_COLUMNS,
  type EntryRow,
  SHEET_COLUMNS,
  sheetValues,
  toEntry,
} from "../entry_row.ts";
import { type HoldRow, toClaimsJson, toHold } from "../hold_row.ts";
import {
  type Hold,
  type KeptEntry,
  type LedgerStore,
  type PriceSheet,
  type Spenders,
  SPENDERS_AT_ONCE,
} from "../ledger.ts";

/** The columns of `entries` as they are selected: amounts as text, because reading all columns as `bigint` is slow. */
export const SELECTED_ENTRY: string = ENTRY_COLUMNS.map((name) =>
  AMOUNT_COLUMNS.has(name) ? `CAST(${name} AS TEXT) AS ${name}` : name
)
  .join(", ");

/** Entries of a database. */
export interface EntryRows {
  /**
   * Inserts rows, as `entryValues` makes them. Returns false if an id exists already: other rows may have been
   * inserted, so the transaction must be rolled back.
   */
  insert(rows: readonly ColumnValue[][]): boolean;
  /** Returns the seq of the last entry ever written; 0 if there was none. */
  lastSeq(): number;
  /** Returns whether a request has an entry. */
  has(id: string): boolean;
  find(id: string): KeptEntry | undefined;
  /** Implements `LedgerStore.spenders`. */
  spenders(after: number): Spenders;
  /** Reads entries after a seq, in order; at most `limit`. */
  after(seq: number, limit: number): KeptEntry[];
  /** Implements `LedgerStore.entriesWithin`. */
  within(span: Parameters<LedgerStore["entriesWithin"]>[0]): KeptEntry[];
  /** Reads the last entries, in order; at most `limit`. */
  last(limit: number): KeptEntry[];
}

/** Opens the entries of a migrated database. */
export function openEntryRows(db: DatabaseSync, sheets: SheetRows): EntryRows {
  const insert = db.prepare(
    `INSERT INTO entries (${ENTRY_COLUMNS.join(", ")}) VALUES (${ENTRY_COLUMNS.map(() => "?").join(", ")})
     ON CONFLICT (id) DO NOTHING`,
  );
  const lastSeq = db.prepare("SELECT coalesce((SELECT max(seq) FROM entries), seq) AS seq FROM ledger_start");
  const has = db.prepare("SELECT 1 FROM entries WHERE id = ?");
  const find = db.prepare(`SELECT ${SELECTED_ENTRY} FROM entries WHERE id = ?`);
  const after = db.prepare(`SELECT ${SELECTED_ENTRY} FROM entries WHERE seq > ? ORDER BY seq LIMIT ?`);
  const charged = db.prepare(
    `SELECT DISTINCT key_id AS "key", group_name AS "group" FROM entries WHERE seq > ? AND seq <= ? AND cost > 0`,
  );
  // An entry charges an end user if it has a period of the user's budget; it is a refusal if that budget was the
  // reason.
  const users = db.prepare(
    `SELECT key_id AS keyId, coalesce(end_user, '') AS user, max(reason IS 'budget') AS refused FROM entries
     WHERE seq > ? AND seq <= ? AND details IS NOT NULL AND (cost > 0 AND json_extract(details, '$.user_since') IS NOT NULL
       OR reason = 'budget' AND json_extract(details, '$.reason.budget.scope') = 'user')
     GROUP BY 1, 2`,
  );
  const within = db.prepare(
    `SELECT ${SELECTED_ENTRY} FROM entries WHERE (at, seq) > (?, ?) AND at < ? ORDER BY at, seq LIMIT ?`,
  );
  const last = db.prepare(`SELECT ${SELECTED_ENTRY} FROM entries ORDER BY seq DESC LIMIT ?`);

  const read = (rows: unknown[]) => toEntries(rows, sheets.reader());

  return {
    insert(rows) {
      for (const row of rows) {
        if (insert.run(...row).changes === 0) return false;
      }
      return true;
    },
    lastSeq: () => Number(lastSeq.get()?.seq),
    has: (id) => has.get(id) !== undefined,
    find(id) {
      const row = find.get(id);
      return row === undefined ? undefined : toEntry(row as unknown as EntryRow, sheets.reader());
    },
    spenders(after) {
      const seq = Math.min(Number(lastSeq.get()?.seq), after + SPENDERS_AT_ONCE);
      const rows = charged.all(after, seq) as { key: string; group: string }[];
      return {
        seq,
        keys: [...new Set(rows.map(({ key }) => key))],
        groups: [...new Set(rows.map(({ group }) => group))],
        users: users.all(after, seq).map(({ keyId, user, refused }) => ({
          keyId: String(keyId),
          user: String(user),
          refused: refused === 1,
        })),
      };
    },
    after: (seq, limit) => read(after.all(seq, limit)),
    within: ({ since, after, until, limit }) => read(within.all(since, after, until, limit)),
    last: (limit) => read(last.all(limit).reverse()),
  };
}

/** Converts rows to entries. */
export function toEntries(rows: readonly unknown[], sheetOf: (version: number) => PriceSheet): KeptEntry[] {
  return rows.map((row) => toEntry(row as EntryRow, sheetOf));
}

/** The price sheets of a database. */
export interface SheetRows {
  /**
   * Returns a function that reads each sheet once, and throws if the version does not exist. It should be used for one
   * page of entries: a longer cache would hide damage of the file.
   */
  reader(): (version: number) => PriceSheet;
  all(): { version: number; sheet: PriceSheet }[];
  insert(version: number, sheet: PriceSheet): void;
}

/** Opens the price sheets of a migrated database. */
export function openSheetRows(db: DatabaseSync): SheetRows {
  const findSheet = db.prepare(`SELECT ${SHEET_COLUMNS} FROM price_sheets WHERE version = ?`);
  const all = db.prepare("SELECT version FROM price_sheets ORDER BY version");
  const insert = db.prepare(`INSERT INTO price_sheets (version, ${SHEET_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);

  function reader(): (version: number) => PriceSheet {
    const cached = new Map<number, PriceSheet>();
    return (version) => {
      let sheet = cached.get(version);
      if (sheet === undefined) {
        const row = findSheet.get(version);
        if (row === undefined) throw new Error(`Cannot read the ledger: there is no price sheet ${version}`);
        sheet = { ...row } as unknown as PriceSheet;
        cached.set(version, sheet);
      }
      return sheet;
    };
  }

  return {
    reader,
    all() {
      const read = reader();
      return all.all().map(({ version }) => ({ version: Number(version), sheet: read(Number(version)) }));
    },
    insert: (version, sheet) => void insert.run(version, ...sheetValues(sheet)),
  };
}

/** The open holds that a database has. */
export interface HoldRows {
  /** Adds a hold, or updates its lease. */
  put(hold: Readonly<Hold>): void;
  delete(id: string): void;
  /** Reads all holds, in order of arrival. */
  all(): Hold[];
}

/** Opens the holds of a migrated database. */
export function openHoldRows(db: DatabaseSync): HoldRows {
  const put = db.prepare(
    `INSERT INTO holds (id, at, key_id, group_name, model, endpoint, amount, claims, lease_until)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until`,
  );
  const remove = db.prepare("DELETE FROM holds WHERE id = ?");
  const all = db.prepare(
    `SELECT id, at, key_id, group_name, model, endpoint, CAST(amount AS TEXT) AS amount, claims, lease_until
     FROM holds ORDER BY at, id`,
  );
  return {
    put({ id, at, keyId, group, model, endpoint, amount, claims, leaseUntil }) {
      put.run(id, at, keyId, group, model, endpoint, amount, JSON.stringify(toClaimsJson(claims)), leaseUntil);
    },
    delete: (id) => void remove.run(id),
    all: () => all.all().map((row) => toHold(row as unknown as HoldRow, JSON.parse(String(row.claims)))),
  };
}
