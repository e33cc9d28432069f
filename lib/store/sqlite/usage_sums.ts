/** Sums over a period from one snapshot of the SQLite file, computed in slices. */
import type { DatabaseSync } from "node:sqlite";
import type { ReadCharged } from "./accounts.ts";
import {
  addFigures,
  cutSpan,
  DAY_MS,
  type DaySpan,
  type SumKind,
  sumKindOf,
  sumName,
  Sums,
  TIME_STEPS,
} from "../days.ts";
import { type CountRow, toCounts } from "../entry_row.ts";
import type { PriceSheet, Spender, SumsHead, UpstreamDaySum, UsageBy, UsageFilter, UsageQuery } from "../ledger.ts";
import { SHORT_TAIL, SUM_TABLES, type SumTable, tagNames } from "../sums.ts";
import { COUNTS, halves, LAST, toAmount } from "./day_sums.ts";
import { openSheetRows } from "./ledger_rows.ts";
import { ENTRY_FIGURES, ENTRY_NAMES, openSavings, prepareSumsHead } from "./sums.ts";

/** Rows summed per slice: about a millisecond of work, at most three. */
const ROWS_AT_ONCE = 500;

/** Computations that read a few rows per slice, within a transaction. */
export interface UsageWork {
  sumUp(query: UsageQuery): Generator<void, Sums>;
  upstreamDays(query: Span): Generator<void, UpstreamDaySum[]>;
  charge(...of: Parameters<ReadCharged>): Generator<void, bigint>;
}

/** Prepares sums of a migrated database. */
export function prepareUsage(db: DatabaseSync): UsageWork {
  return new StatementSums(db);
}

/** A period in Unix milliseconds, and a filter. */
type Span = Pick<UsageQuery, "since" | "until" | "only">;

type Row = Record<string, unknown>;

/** The period, filter, names and figures of a report. */
interface Summed extends Span {
  /** The sums per day that have its names; absent: only single entries have. */
  kind: SumKind | undefined;
  /** Selected columns: those of a table of sums, or of entries. */
  names: (table: string) => readonly string[];
  figures: readonly string[];
  add(rows: readonly Row[]): void;
}

/** The sums per day that only requests by key, group, model and day have: those of days that were pruned long ago. */
const OLD_DAYS: SumTable = {
  table: "days",
  names: ["key_id", "group_name", "model"],
  figures: [...COUNTS.split(", "), "cost", "overrun"],
};

const AMOUNTS: ReadonlySet<string> = new Set(["cost", "overrun", "saved", "target_cost"]);

class StatementSums implements UsageWork {
  readonly #db: DatabaseSync;
  readonly #statements: ReturnType<typeof prepareStatements>;
  readonly #savings: ReturnType<typeof openSavings>;
  readonly #sheets: ReturnType<typeof openSheetRows>;
  /** Prepared statements by SQL text. */
  readonly #prepared = new Map<string, ReturnType<DatabaseSync["prepare"]>>();

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#statements = prepareStatements(db);
    this.#sheets = openSheetRows(db);
    this.#savings = openSavings(db, this.#sheets);
  }

  *charge({ id, since }: Spender, begun: () => void): Generator<void, bigint> {
    // The first read fixes the snapshot.
    this.#statements.start.get();
    begun();
    let sum = 0n;
    const statement = this.#prepare(
      `SELECT ${halves("cost")} FROM days WHERE ${rangeOf(OLD_DAYS)} AND group_name = ?`,
    );
    for (const range of this.#dayRanges(OLD_DAYS, { from: since, until: Number.MAX_SAFE_INTEGER })) {
      const row = statement.get(...range, id);
      sum += toAmount(row?.cost_high, row?.cost_low);
      yield;
    }
    return sum;
  }

  *sumUp(query: UsageQuery): Generator<void, Sums> {
    const total = new Sums();
    const { by, thenBy } = query;
    yield* this.#collect({
      ...query,
      kind: sumKindOf(query),
      names: (table) => [by, ...(thenBy === undefined ? [] : [thenBy])].map((name) => columnOf(table, name)),
      figures: [...OLD_DAYS.figures, "saved"],
      add: (rows) => addRows(total, query, rows),
    });
    return total;
  }

  *upstreamDays(query: Span): Generator<void, UpstreamDaySum[]> {
    const sheetOf = this.#sheets.reader();
    const sums = new Map<string, UpstreamDaySum>();
    const names = ["upstream", "model", "day", "price_version", "has_target_price"];
    yield* this.#collect({
      ...query,
      kind: sumKindOf({ ...query, by: "upstream" }),
      names: (table) => names.map((name) => table === "entries" ? ENTRY_NAMES[name] ?? name : name),
      figures: SUM_TABLES.upstreams.figures,
      add: (rows) => addUpstreams(sums, rows, sheetOf),
    });
    return [...sums.values()];
  }

  *#collect(summed: Summed): Generator<void> {
    this.#savings.refresh();
    const { kind } = summed;
    if (kind === undefined) return yield* this.#addEntries(summed, summed);
    const start = Number(this.#statements.start.get()?.day);
    const head = this.#statements.head();
    // Sums of end users are deleted with the entries of their days.
    const firstDay = kind === "users" ? Math.max(head.firstDay, start + 1) : head.firstDay;
    const { whole, pieces } = cutSpan(summed);
    yield* this.#addDays(summed, whole, { head, firstDay });
    for (const piece of pieces) {
      yield;
      const days = { from: piece.day, until: piece.day + 1 };
      const isPruned = piece.day <= start;
      if (isPruned ? kind === "upstreams" : this.#isWhole(piece)) {
        yield* this.#addDays(summed, days, { head, firstDay });
      } else yield* this.#addEntries(summed, piece);
    }
  }

  /** Adds whole days: their sums, and entries that are not in the sums yet. */
  *#addDays(
    summed: Summed,
    { from, until }: DaySpan["whole"],
    { head, firstDay }: { head: SumsHead; firstDay: number },
  ): Generator<void> {
    const old = { from, until: Math.min(until, firstDay) };
    if (old.from < old.until) {
      if (summed.kind === "upstreams" && this.#hasOldSums(summed)) yield* this.#addSums(summed, OLD_DAYS, old);
      else yield* this.#addEntries(summed, msOf(old));
    }
    const days = { from: Math.max(from, firstDay), until };
    if (summed.kind === undefined || days.from >= days.until) return;
    yield* this.#addSums(summed, SUM_TABLES[summed.kind], days);
    yield* this.#addTail(summed, msOf(days), head.seq);
  }

  #hasOldSums({ names }: Summed): boolean {
    return !names("days").some((name) => !["day", ...OLD_DAYS.names].includes(name));
  }

  *#addSums(summed: Summed, table: SumTable, days: DaySpan["whole"]): Generator<void> {
    const { statement, values } = this.#select(summed, {
      table: table.table,
      range: rangeOf(table),
      from: table.table,
    });
    for (const range of this.#dayRanges(table, days)) {
      summed.add(statement.all(...range, ...values));
      yield;
    }
  }

  /** Adds the entries of a period that are not in the sums: those after a number. */
  *#addTail(summed: Summed, { since, until }: MsSpan, after: number): Generator<void> {
    const last = Number(this.#statements.last.get()?.seq ?? 0);
    if (last <= after) return;
    if (last - after > SHORT_TAIL) return yield* this.#addEntries(summed, { since, until }, after);
    const range = "seq > ? AND seq <= ? AND at >= ? AND at < ?";
    const { statement, values } = this.#select(summed, { table: "entries", range, from: "entries" });
    for (let seq = after; seq < last; seq += ROWS_AT_ONCE) {
      summed.add(statement.all(seq, Math.min(last, seq + ROWS_AT_ONCE), since, until, ...values));
      yield;
    }
  }

  /** Adds the entries of a period, those after a number. */
  *#addEntries(summed: Summed, { since, until }: MsSpan, after = 0): Generator<void> {
    const { index, driving } = indexOf(summed.only);
    const from = `entries INDEXED BY ${index}`;
    const entryEnd = this.#prepare(
      `SELECT at, seq FROM ${from} WHERE ${driving[0]} AND (at, seq) > (?, ?) AND at < ?
       ORDER BY at, seq LIMIT 1 OFFSET ${ROWS_AT_ONCE - 1}`,
    );
    const range = "(at, seq) > (?, ?) AND (at, seq) <= (?, ?) AND seq > ?";
    const { statement, values } = this.#select(summed, { table: "entries", range, from });
    let place = [since - 1, Number.MAX_SAFE_INTEGER];
    for (;;) {
      const row = entryEnd.get(...driving.slice(1), ...place, until);
      const end = row === undefined ? [until - 1, Number.MAX_SAFE_INTEGER] : [Number(row.at), Number(row.seq)];
      summed.add(statement.all(...place, ...end, after, ...values));
      if (row === undefined) return;
      place = end;
      yield;
    }
  }

  /** The statement that sums a range of rows, and its parameters after the range. */
  #select(
    { names, figures, only = {} }: Summed,
    { table, range, from }: { table: string; range: string; from: string },
  ) {
    const filters = FILTERS.flatMap(([name, test]) =>
      only[name] === undefined ? [] : [{ test, value: name === "tag" ? `,${only[name]},` : only[name] ?? "" }]
    );
    const columns = names(table).map((column, index) => `${column} AS name_${index}`);
    const known = table === OLD_DAYS.table ? OLD_DAYS.figures : figures;
    const sums = known.map((name) => {
      const value = table === "entries" ? ENTRY_FIGURES[name] ?? name : name;
      return AMOUNTS.has(name) ? halves(name, value) : `sum(${value}) AS ${name}`;
    });
    const joined = table === "entries" ? "LEFT JOIN sheet_savings ON version = price_version" : "";
    const statement = this.#prepare(
      `SELECT ${[...columns, ...sums].join(", ")} FROM ${from} ${joined}
       WHERE ${[range, ...filters.map(({ test }) => test)].join(" AND ")}
       GROUP BY ${columns.map((_, index) => index + 1).join(", ")}`,
    );
    return { statement, values: filters.map(({ value }) => value) };
  }

  #prepare(text: string): ReturnType<DatabaseSync["prepare"]> {
    let statement = this.#prepared.get(text);
    if (statement === undefined) {
      statement = this.#db.prepare(text);
      statement.setReadBigInts(true);
      this.#prepared.set(text, statement);
    }
    return statement;
  }

  /** Returns whether a period covers all entries of its day. */
  #isWhole({ day, since, until }: DaySpan["pieces"][number]): boolean {
    const { outside } = this.#statements;
    return outside.get(day * DAY_MS, since) === undefined && outside.get(until, (day + 1) * DAY_MS) === undefined;
  }

  /** Key ranges of the sums between two days, each read by one statement; `until` is exclusive. */
  *#dayRanges({ table, names }: SumTable, { from, until }: DaySpan["whole"]): Generator<Place[]> {
    const key = ["day", ...names];
    const columns = key.join(", ");
    const dayEnd = this.#prepare(
      `SELECT ${columns} FROM ${table} WHERE (${columns}) > (${marks(key)}) AND day < ?
       ORDER BY ${columns} LIMIT 1 OFFSET ${ROWS_AT_ONCE - 1}`,
    );
    const before = (day: number): Place[] => [day - 1, ...names.map(() => LAST)];
    for (let place = before(from);;) {
      const row = dayEnd.get(...place, until);
      const end = row === undefined ? before(until) : key.map((name) => row[name] as Place);
      yield [...place, ...end];
      if (row === undefined) return;
      place = end;
    }
  }
}

/** Unix milliseconds; `until` is exclusive. */
type MsSpan = Pick<UsageQuery, "since" | "until">;

function msOf({ from, until }: DaySpan["whole"]): MsSpan {
  return { since: from * DAY_MS, until: until * DAY_MS };
}

function marks(names: readonly string[]): string {
  return names.map(() => "?").join(", ");
}

function rangeOf({ names }: SumTable): string {
  const key = ["day", ...names];
  return `(${key.join(", ")}) > (${marks(key)}) AND (${key.join(", ")}) <= (${marks(key)})`;
}

/** Columns of the filters. */
const FILTERS: readonly (readonly [keyof UsageFilter, string])[] = [
  ["keyId", "key_id = ?"],
  ["group", "group_name = ?"],
  ["model", "model = ?"],
  ["user", "end_user = ?"],
  ["tag", "instr(tags, ?) > 0"],
];

/** Columns of the groupings in tables of sums; those of entries may be expressions. */
const COLUMNS: Readonly<Record<UsageBy, string>> = {
  key: "key_id",
  group: "group_name",
  model: "model",
  upstream: "upstream",
  day: "day",
  hour: `at / ${TIME_STEPS.hour.ms}`,
  minute: `at / ${TIME_STEPS.minute.ms}`,
  user: "end_user",
  tag: "tags",
};

function columnOf(table: string, by: UsageBy): string {
  return table === "entries" ? ENTRY_NAMES[COLUMNS[by]] ?? COLUMNS[by] : COLUMNS[by];
}

/** The most selective index of single entries, and the condition that it serves with its value. */
function indexOf({ keyId, user }: UsageFilter = {}): { index: string; driving: readonly [string, ...string[]] } {
  if (user !== undefined) return { index: "entries_by_user", driving: ["end_user = ?", user] };
  if (keyId !== undefined) return { index: "entries_by_key", driving: ["key_id = ?", keyId] };
  return { index: "entries_by_time", driving: ["1"] };
}

function addRows(total: Sums, { by, thenBy }: UsageQuery, rows: readonly Row[]): void {
  const namesOf = (by: UsageBy, value: unknown) => by === "tag" ? tagNames(String(value)) : [sumName(by, value)];
  for (const row of rows) {
    const figures = { ...toFigures(row), saved: toAmount(row.saved_high, row.saved_low) };
    for (const name of namesOf(by, row.name_0)) {
      const thenNames = thenBy === undefined ? [undefined] : namesOf(thenBy, row.name_1);
      for (const thenName of thenNames) {
        total.add({ name, ...(thenName !== undefined && { thenName }) }, figures);
      }
    }
  }
}

function addUpstreams(
  sums: Map<string, UpstreamDaySum>,
  rows: readonly Row[],
  sheetOf: (version: number) => PriceSheet,
): void {
  for (const row of rows) {
    const [upstream, model, day, version] = [row.name_0, row.name_1, row.name_2, Number(row.name_3)];
    const name = [upstream, model, day, version, row.name_4].join("\n");
    const sum = sums.get(name);
    const added: UpstreamDaySum = {
      upstream: String(upstream),
      model: String(model),
      day: Number(day),
      ...(version > 0 && { sheet: sheetOf(version) }),
      hasTargetPrice: row.name_4 === 1n,
      ...toFigures(row),
      targetCost: toAmount(row.target_cost_high, row.target_cost_low),
      counted: Number(row.counted),
      attempts: Number(row.attempts),
    };
    if (sum === undefined) sums.set(name, added);
    else {
      addFigures(sum, added);
      sum.targetCost += added.targetCost;
      sum.counted += added.counted;
      sum.attempts += added.attempts;
    }
  }
}

function toFigures(row: Row) {
  return {
    ...toCounts(row as unknown as CountRow),
    cost: toAmount(row.cost_high, row.cost_low),
    overrun: toAmount(row.overrun_high, row.overrun_low),
  };
}

function prepareStatements(db: DatabaseSync) {
  return {
    start: db.prepare("SELECT day FROM ledger_start"),
    head: prepareSumsHead(db),
    last: db.prepare("SELECT max(seq) AS seq FROM entries"),
    outside: db.prepare("SELECT 1 FROM entries WHERE at >= ? AND at < ? LIMIT 1"),
  };
}

/** A key column's value. */
type Place = number | bigint | string | Uint8Array;
