/** Sums over a span of time, of the SQLite file as it is at one moment, worked out in slices. */
import { DatabaseSync } from "node:sqlite";
import { runSliced } from "../../scheduler.ts";
import type { ReadCharged } from "./accounts.ts";
import { cutSpan, DAY_MS, type DaySpan, nameBy, Sums, TOKEN_CLASSES } from "../days.ts";
import { type CountRow, NAME_COLUMNS, toCounts } from "../entry_row.ts";
import type { LedgerStore, Spender, UsageBy } from "../ledger.ts";
import { COUNTS, halves, LAST, toAmount } from "./day_sums.ts";
import { whenFree } from "./transaction.ts";

/** Rows that are summed between two looks at the clock: about a millisecond of work, at most three. */
const ROWS_AT_ONCE = 500;

type Query = Parameters<LedgerStore["usage"]>[0];

/** Sums of a file. */
export interface SqliteUsage {
  /** As `LedgerStore.usage`: the ledger as it is when the work begins, whatever is entered or pruned until its end. */
  usage: LedgerStore["usage"];
  /** Reads the amount charged to a group. */
  charged: ReadCharged;
  close(): void;
}

/**
 * Prepares sums over a migrated file. They run one after the other on a separate connection, opened when first needed:
 * a read-only transaction sees one snapshot of the file and blocks no writer.
 */
export function openSqliteUsage(file: string): SqliteUsage {
  let opened: { db: DatabaseSync; work: UsageWork } | undefined;
  let isClosed = false;
  let last: Promise<unknown> = Promise.resolve();

  function open(): { db: DatabaseSync; work: UsageWork } {
    if (isClosed) throw new Error("Cannot sum up: the store is closed");
    if (opened !== undefined) return opened;
    const db = new DatabaseSync(file, { readOnly: true });
    try {
      return opened = { db, work: prepareUsage(db) };
    } catch (error) {
      db.close();
      throw error;
    }
  }

  async function run<T>(begin: (work: UsageWork) => Generator<void, T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    // Another process may be at the log at this moment, for instance the first one to open the file after a crash.
    const { db, work } = await whenFree(open);
    db.exec("BEGIN");
    try {
      return await runSliced(begin(work), signal);
    } finally {
      if (db.isOpen) db.exec("ROLLBACK");
    }
  }

  function inTurn<T>(begin: (work: UsageWork) => Generator<void, T>, signal?: AbortSignal): Promise<T> {
    const done = last.then(() => run(begin, signal));
    last = done.catch(() => {});
    return done;
  }

  return {
    usage: async (query, signal) => (await inTurn((work) => work.sumUp(query), signal)).list(),
    charged: (spender, begun) => inTurn((work) => work.charge(spender, begun)),
    close() {
      isClosed = true;
      opened?.db.close();
      opened = undefined;
    },
  };
}

/** Computations that read a few rows at a time, within a transaction. */
export interface UsageWork {
  sumUp(query: Query): Generator<void, Sums>;
  charge(...of: Parameters<ReadCharged>): Generator<void, bigint>;
}

/** Prepares sums over a database that is up to date. */
export function prepareUsage(db: DatabaseSync): UsageWork {
  return new StatementSums(db);
}

class StatementSums implements UsageWork {
  readonly #statements: ReturnType<typeof prepareStatements>;

  constructor(db: DatabaseSync) {
    this.#statements = prepareStatements(db);
  }

  *charge({ id, since }: Spender, begun: () => void): Generator<void, bigint> {
    // The first look decides which state of the file is seen.
    this.#statements.goneDay.get();
    begun();
    let sum = 0n;
    for (const range of this.#dayRanges(since, Number.MAX_SAFE_INTEGER)) {
      const row = this.#statements.ofGroup.get(...range, id);
      sum += toAmount(row?.cost_high, row?.cost_low);
      yield;
    }
    return sum;
  }

  *sumUp({ since, until, by }: Query): Generator<void, Sums> {
    const total = new Sums();
    const { whole, pieces } = cutSpan({ since, until });
    if (whole.from < whole.until) yield* this.#addDays(total, by, whole);
    for (const piece of pieces) {
      yield;
      if (this.#isWhole(piece)) yield* this.#addDays(total, by, { from: piece.day, until: piece.day + 1 });
      else yield* this.#addEntries(total, by, piece);
    }
    return total;
  }

  *#addDays(total: Sums, by: UsageBy, { from, until }: DaySpan["whole"]): Generator<void> {
    for (const range of this.#dayRanges(from, until)) {
      addRows(total, by, { rows: this.#statements.ofDays[by].all(...range) });
      yield;
    }
  }

  /** Sums of single entries. */
  *#addEntries(total: Sums, by: UsageBy, { day, since, until }: DaySpan["pieces"][number]): Generator<void> {
    const { entryEnd, ofEntries } = this.#statements;
    let place = [since - 1, Number.MAX_SAFE_INTEGER];
    for (;;) {
      const row = entryEnd.get(...place, until) as { at: number; seq: number } | undefined;
      const end = row === undefined ? [until - 1, Number.MAX_SAFE_INTEGER] : [row.at, row.seq];
      addRows(total, by, { rows: ofEntries[by].all(...place, ...end), day });
      if (row === undefined) return;
      place = end;
      yield;
    }
  }

  /**
   * True if the period covers all entries of the day, or if some of them were pruned: then the sums of the day are
   * used.
   */
  #isWhole({ day, since, until }: DaySpan["pieces"][number]): boolean {
    const { goneDay, outside } = this.#statements;
    return day <= Number(goneDay.get()?.day) ||
      (outside.get(day * DAY_MS, since) === undefined && outside.get(until, (day + 1) * DAY_MS) === undefined);
  }

  /** Key ranges of the sums from one day up to, not including, another; each is read by one statement. */
  *#dayRanges(from: number, until: number): Generator<Place[]> {
    let place: Place[] = [from - 1, LAST, LAST, LAST];
    for (;;) {
      const row = this.#statements.dayEnd.get(...place, until) as DayPlace | undefined;
      const end = row === undefined ? [until - 1, LAST, LAST, LAST] : [row.day, row.key_id, row.group_name, row.model];
      yield [...place, ...end];
      if (row === undefined) return;
      place = end;
    }
  }
}

function addRows(
  total: Sums,
  by: UsageBy,
  { rows, day }: { rows: readonly Record<string, unknown>[]; day?: number },
): void {
  for (const row of rows) {
    const name = by === "day" ? dayName(day ?? Number(row.name)) : String(row.name);
    total.add(name, {
      ...toCounts(row as unknown as CountRow),
      cost: toAmount(row.cost_high, row.cost_low),
      overrun: toAmount(row.overrun_high, row.overrun_low),
    });
  }
}

function prepareStatements(db: DatabaseSync) {
  function byName(text: (column: string) => string): Readonly<Record<UsageBy, ReturnType<DatabaseSync["prepare"]>>> {
    const statement = (by: UsageBy) => {
      const prepared = db.prepare(text(NAME_COLUMNS[by]));
      prepared.setReadBigInts(true);
      return prepared;
    };
    return { key: statement("key"), group: statement("group"), model: statement("model"), day: statement("day") };
  }

  const goneDay = db.prepare("SELECT day FROM ledger_start");
  const outside = db.prepare("SELECT 1 FROM entries WHERE at >= ? AND at < ? LIMIT 1");
  const dayRows = "(day, key_id, group_name, model) > (?, ?, ?, ?)";
  const entryRows = "(at, seq) > (?, ?)";
  const dayEnd = db.prepare(
    `SELECT day, key_id, group_name, model FROM days WHERE ${dayRows} AND day < ?
     ORDER BY day, key_id, group_name, model LIMIT 1 OFFSET ${ROWS_AT_ONCE - 1}`,
  );
  const entryEnd = db.prepare(
    `SELECT at, seq FROM entries WHERE ${entryRows} AND at < ? ORDER BY at, seq LIMIT 1 OFFSET ${ROWS_AT_ONCE - 1}`,
  );
  const ofGroup = db.prepare(
    `SELECT ${halves("cost")} FROM days WHERE ${dayRows} AND (day, key_id, group_name, model) <= (?, ?, ?, ?)
     AND group_name = ?`,
  );
  ofGroup.setReadBigInts(true);
  const sums = COUNTS.split(", ").map((name) => `sum(${name}) AS ${name}`).join(", ");
  const amounts = `${halves("cost")}, ${halves("overrun")}`;
  const ofDays = byName((name) =>
    `SELECT ${name} AS name, ${sums}, ${amounts} FROM days
     WHERE ${dayRows} AND (day, key_id, group_name, model) <= (?, ?, ?, ?) GROUP BY 1`
  );
  const ofEntries = byName((name) =>
    // Within a day all have the same.
    `SELECT ${name === "day" ? "''" : name} AS name, count(*) AS requests,
       sum(ending IN ('failed', 'refused', 'lost')) AS failed,
       ${TOKEN_CLASSES.map((kind) => `sum(${kind}) AS ${kind}`).join(", ")}, sum(images) AS images, ${amounts}
     FROM entries WHERE ${entryRows} AND (at, seq) <= (?, ?) GROUP BY 1`
  );
  return { goneDay, outside, dayEnd, entryEnd, ofGroup, ofDays, ofEntries };
}

/** A value of a key of the table. */
type Place = number | string | Uint8Array;

/** The key of a row of `days`. */
interface DayPlace {
  day: number;
  key_id: string;
  group_name: string;
  model: string;
}

function dayName(day: number): string {
  return nameBy("day", { day, keyId: "", group: "", model: "" });
}
