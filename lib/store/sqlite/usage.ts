/** Sums over a period from one snapshot of the SQLite file, computed in slices. */
import { DatabaseSync } from "node:sqlite";
import { runSliced } from "../../scheduler.ts";
import type { ReadCharged } from "./accounts.ts";
import { cutSpan, DAY_MS, type DaySpan, needsEntries, sumName, Sums, TIME_STEPS, TOKEN_CLASSES } from "../days.ts";
import { type CountRow, NAME_COLUMNS, toCounts } from "../entry_row.ts";
import type { LedgerStore, Spender, UsageBy, UsageFilter, UsageQuery } from "../ledger.ts";
import { COUNTS, halves, LAST, toAmount } from "./day_sums.ts";
import { prepareSearch } from "./search.ts";
import { prepareTopUsers } from "./user_sums.ts";
import { whenFree } from "./transaction.ts";

/** Rows summed per slice: about a millisecond of work, at most three. */
const ROWS_AT_ONCE = 500;

/** Reports of a file. */
export interface SqliteReports {
  /** As `LedgerStore.usage`, from a snapshot at the start of the work. */
  usage: LedgerStore["usage"];
  /** As `LedgerStore.search`. */
  search: LedgerStore["search"];
  /** As `LedgerStore.topUsers`. */
  topUsers: LedgerStore["topUsers"];
  /** Reads the amount charged to a group. */
  charged: ReadCharged;
  close(): void;
}

/**
 * Prepares reports of a migrated file. Sums run one after the other, and so do searches, each kind on its own
 * connection: a read-only transaction sees one snapshot of the file and blocks no writer.
 */
export function openSqliteReports(file: string): SqliteReports {
  const sums = openReader(file, prepareUsage);
  const searches = openReader(file, (db) => ({ search: prepareSearch(db), topUsers: prepareTopUsers(db) }));
  return {
    usage: async (query, signal) => (await sums.inTurn((work) => work.sumUp(query), signal)).list(),
    search: (query, signal) => searches.inTurn(({ search }) => search(query), signal),
    topUsers: (of, signal) => searches.inTurn(({ topUsers }) => topUsers(of), signal),
    charged: (spender, begun) => sums.inTurn((work) => work.charge(spender, begun)),
    close() {
      sums.close();
      searches.close();
    },
  };
}

/** Runs work one after the other on a connection opened at the first use. */
interface Reader<Work> {
  inTurn<T>(begin: (work: Work) => Generator<void, T>, signal?: AbortSignal): Promise<T>;
  close(): void;
}

function openReader<Work>(file: string, prepare: (db: DatabaseSync) => Work): Reader<Work> {
  let opened: { db: DatabaseSync; work: Work } | undefined;
  let isClosed = false;
  let last: Promise<unknown> = Promise.resolve();

  function open(): { db: DatabaseSync; work: Work } {
    if (isClosed) throw new Error("Cannot read the ledger: the store is closed");
    if (opened !== undefined) return opened;
    const db = new DatabaseSync(file, { readOnly: true });
    try {
      return opened = { db, work: prepare(db) };
    } catch (error) {
      db.close();
      throw error;
    }
  }

  async function run<T>(begin: (work: Work) => Generator<void, T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    // Another process may hold the log at this moment, for instance the first one to open the file after a crash.
    const { db, work } = await whenFree(open);
    db.exec("BEGIN");
    try {
      return await runSliced(begin(work), signal);
    } finally {
      if (db.isOpen) db.exec("ROLLBACK");
    }
  }

  return {
    inTurn(begin, signal) {
      const done = last.then(() => run(begin, signal));
      last = done.catch(() => {});
      return done;
    },
    close() {
      isClosed = true;
      opened?.db.close();
      opened = undefined;
    },
  };
}

/** Computations that read a few rows per slice, within a transaction. */
export interface UsageWork {
  sumUp(query: UsageQuery): Generator<void, Sums>;
  charge(...of: Parameters<ReadCharged>): Generator<void, bigint>;
}

/** Prepares sums of a migrated database. */
export function prepareUsage(db: DatabaseSync): UsageWork {
  return new StatementSums(db);
}

class StatementSums implements UsageWork {
  readonly #db: DatabaseSync;
  readonly #statements: ReturnType<typeof prepareStatements>;
  /** Prepared sums by SQL text. */
  readonly #sums = new Map<string, ReturnType<DatabaseSync["prepare"]>>();

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#statements = prepareStatements(db);
  }

  *charge({ id, since }: Spender, begun: () => void): Generator<void, bigint> {
    // The first read fixes the snapshot.
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

  *sumUp(query: UsageQuery): Generator<void, Sums> {
    const total = new Sums();
    if (needsEntries(query)) {
      yield* this.#addEntries(total, query, query);
      return total;
    }
    const { whole, pieces } = cutSpan(query);
    if (whole.from < whole.until) yield* this.#addDays(total, query, whole);
    for (const piece of pieces) {
      yield;
      if (this.#isWhole(piece)) yield* this.#addDays(total, query, { from: piece.day, until: piece.day + 1 });
      else yield* this.#addEntries(total, query, piece);
    }
    return total;
  }

  *#addDays(total: Sums, query: UsageQuery, { from, until }: DaySpan["whole"]): Generator<void> {
    const { statement, values } = this.#select("days", query);
    for (const range of this.#dayRanges(from, until)) {
      addRows(total, query, statement.all(...range, ...values));
      yield;
    }
  }

  /** Adds sums of single entries. */
  *#addEntries(total: Sums, query: UsageQuery, { since, until }: Pick<UsageQuery, "since" | "until">): Generator<void> {
    const { index, driving } = indexOf(query.only);
    const entryEnd = this.#db.prepare(
      `SELECT at, seq FROM entries INDEXED BY ${index} WHERE ${driving[0]} AND (at, seq) > (?, ?) AND at < ?
       ORDER BY at, seq LIMIT 1 OFFSET ${ROWS_AT_ONCE - 1}`,
    );
    const { statement, values } = this.#select("entries", query);
    let place = [since - 1, Number.MAX_SAFE_INTEGER];
    for (;;) {
      const row = entryEnd.get(...driving.slice(1), ...place, until) as { at: number; seq: number } | undefined;
      const end = row === undefined ? [until - 1, Number.MAX_SAFE_INTEGER] : [row.at, row.seq];
      addRows(total, query, statement.all(...place, ...end, ...values));
      if (row === undefined) return;
      place = end;
      yield;
    }
  }

  /** The statement that sums a range of rows, and its parameters after the range. */
  #select(table: "days" | "entries", { by, thenBy, only = {} }: UsageQuery) {
    const filters = FILTERS.flatMap(([name, test]) =>
      only[name] === undefined ? [] : [{ name, test, text: only[name] ?? "" }]
    );
    const source = table === "days" ? table : `entries INDEXED BY ${indexOf(only).index}`;
    const text = sumText({ table, source }, { by, thenBy, tests: filters.map(({ test }) => test) });
    let statement = this.#sums.get(text);
    if (statement === undefined) {
      statement = this.#db.prepare(text);
      statement.setReadBigInts(true);
      this.#sums.set(text, statement);
    }
    return { statement, values: filters.map(({ name, text }) => name === "tag" ? `,${text},` : text) };
  }

  /** Returns whether to use the sums of the day: the period covers all of its entries, or some were pruned. */
  #isWhole({ day, since, until }: DaySpan["pieces"][number]): boolean {
    const { goneDay, outside } = this.#statements;
    return day <= Number(goneDay.get()?.day) ||
      (outside.get(day * DAY_MS, since) === undefined && outside.get(until, (day + 1) * DAY_MS) === undefined);
  }

  /** Key ranges of the sums between two days, each read by one statement; `until` is exclusive. */
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

/** Columns of the filters. */
const FILTERS: readonly (readonly [keyof UsageFilter, string])[] = [
  ["keyId", "key_id = ?"],
  ["group", "group_name = ?"],
  ["model", "model = ?"],
  ["user", "end_user = ?"],
  ["tag", "instr(tags, ?) > 0"],
];

/** Columns of the groupings. */
const ENTRY_NAMES: Readonly<Record<UsageBy, string>> = {
  ...NAME_COLUMNS,
  upstream: "upstream",
  day: `at / ${TIME_STEPS.day.ms}`,
  hour: `at / ${TIME_STEPS.hour.ms}`,
  minute: `at / ${TIME_STEPS.minute.ms}`,
  user: "coalesce(end_user, '')",
  tag: "coalesce(tag.value, '')",
};

/** One row per tag of an entry; entries without tags have one row, and their details are not parsed. */
const WITH_TAGS = "LEFT JOIN json_each(iif(entries.tags IS NULL, NULL, entries.details), '$.tags') AS tag";

/** The most selective index of single entries, and the condition that it serves with its value. */
function indexOf({ keyId, user }: UsageFilter = {}): { index: string; driving: readonly [string, ...string[]] } {
  if (user !== undefined) return { index: "entries_by_user", driving: ["end_user = ?", user] };
  if (keyId !== undefined) return { index: "entries_by_key", driving: ["key_id = ?", keyId] };
  return { index: "entries_by_time", driving: ["1"] };
}

const RANGES = {
  days: "(day, key_id, group_name, model) > (?, ?, ?, ?) AND (day, key_id, group_name, model) <= (?, ?, ?, ?)",
  entries: "(at, seq) > (?, ?) AND (at, seq) <= (?, ?)",
} as const;

const COUNTED = {
  days: COUNTS.split(", ").map((name) => `sum(${name}) AS ${name}`).join(", "),
  entries: `count(*) AS requests, sum(ending IN ('failed', 'refused', 'lost')) AS failed,
    ${TOKEN_CLASSES.map((kind) => `sum(${kind}) AS ${kind}`).join(", ")}, sum(images) AS images`,
} as const;

function sumText(
  { table, source }: { table: "days" | "entries"; source: string },
  { by, thenBy, tests }: Pick<UsageQuery, "by"> & { thenBy: UsageBy | undefined; tests: readonly string[] },
): string {
  const names: Readonly<Partial<Record<UsageBy, string>>> = table === "days" ? NAME_COLUMNS : ENTRY_NAMES;
  const column = (by: UsageBy | undefined) => by === undefined ? "''" : names[by];
  const from = by === "tag" || thenBy === "tag" ? `${source} ${WITH_TAGS}` : source;
  return `SELECT ${column(by)} AS name, ${column(thenBy)} AS then_name, ${COUNTED[table]},
    ${halves("cost")}, ${halves("overrun")} FROM ${from} WHERE ${
    [RANGES[table], ...tests].join(" AND ")
  } GROUP BY 1, 2`;
}

function addRows(total: Sums, { by, thenBy }: UsageQuery, rows: readonly Record<string, unknown>[]): void {
  for (const row of rows) {
    const thenName = thenBy === undefined ? {} : { thenName: sumName(thenBy, row.then_name) };
    total.add({ name: sumName(by, row.name), ...thenName }, {
      ...toCounts(row as unknown as CountRow),
      cost: toAmount(row.cost_high, row.cost_low),
      overrun: toAmount(row.overrun_high, row.overrun_low),
    });
  }
}

function prepareStatements(db: DatabaseSync) {
  const goneDay = db.prepare("SELECT day FROM ledger_start");
  const outside = db.prepare("SELECT 1 FROM entries WHERE at >= ? AND at < ? LIMIT 1");
  const dayRows = "(day, key_id, group_name, model) > (?, ?, ?, ?)";
  const dayEnd = db.prepare(
    `SELECT day, key_id, group_name, model FROM days WHERE ${dayRows} AND day < ?
     ORDER BY day, key_id, group_name, model LIMIT 1 OFFSET ${ROWS_AT_ONCE - 1}`,
  );
  const ofGroup = db.prepare(
    `SELECT ${halves("cost")} FROM days WHERE ${dayRows} AND (day, key_id, group_name, model) <= (?, ?, ?, ?)
     AND group_name = ?`,
  );
  ofGroup.setReadBigInts(true);
  return { goneDay, outside, dayEnd, ofGroup };
}

/** A key column's value. */
type Place = number | string | Uint8Array;

/** The primary key of a row of `days`. */
interface DayPlace {
  day: number;
  key_id: string;
  group_name: string;
  model: string;
}
