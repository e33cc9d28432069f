/** Sums over a period from one snapshot of the SQLite file, computed in slices. */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type CutSpan, cutSpan, DAY_MS, type SumKind, sumKindOf, sumName, Sums, TIME_STEPS } from "../days.ts";
import type { Spender, SumsHead, UpstreamDaySum, UsageBy, UsageQuery } from "../ledger.ts";
import { SHORT_TAIL, stepMs, SUM_TABLES, type SumTable, tagNames } from "../sums.ts";
import { allOf, conditionsOf } from "../search_sql.ts";
import { COUNTS, halves, LAST, toAmount } from "./day_sums.ts";
import { openSheetRows } from "./ledger_rows.ts";
import { figureColumns, RowSums } from "./row_sums.ts";
import { DIALECT, indexOf } from "./dialect.ts";
import { ENTRY_FIGURES, ENTRY_NAMES, openSavings, prepareSumsHead } from "./sums.ts";

/** Rows summed per slice: about a millisecond of work, at most three. */
const ROWS_AT_ONCE = 500;

/** Deno's types lack this method of Node. */
type ArrayStatement = StatementSync & { setReturnArrays?(isOn: boolean): void };

/** Prepares sums of a migrated database. */
export function prepareUsage(db: DatabaseSync): UsageWork {
  return new UsageWork(db);
}

/** A period in Unix milliseconds, and a filter. */
type Span = Pick<UsageQuery, "since" | "until" | "only">;

/** The period, filter, names and figures of a report. */
interface Summed extends Span {
  /** The sums that have its names; absent: only single entries have. */
  kind: SumKind | undefined;
  /** Selected columns: those of a table of sums, or of entries. */
  names: (table: string) => readonly string[];
  figures: readonly string[];
  rows: RowSums;
}

/** The sums per day that only requests by key, group, model and day have: those of days that were pruned long ago. */
const OLD_DAYS: SumTable = {
  table: "days",
  step: "day",
  names: ["key_id", "group_name", "model"],
  figures: [...COUNTS.split(", "), "cost", "overrun"],
};

const USAGE_FIGURES: readonly string[] = [...OLD_DAYS.figures, "saved"];

/** Computations that read a few rows per slice, within a transaction. */
export class UsageWork {
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

  *charge({ id, since }: Spender, started: () => void): Generator<void, bigint> {
    // The first read fixes the snapshot.
    this.#statements.start.get();
    started();
    let sum = 0n;
    const statement = this.#prepare(
      `SELECT ${halves("cost")} FROM days WHERE ${rangeOf(OLD_DAYS)} AND group_name = ?`,
    );
    for (const range of this.#ranges(OLD_DAYS, { from: since, until: Number.MAX_SAFE_INTEGER })) {
      const row = statement.get(...range, id);
      sum += toAmount(row?.cost_high, row?.cost_low);
      yield;
    }
    return sum;
  }

  *sumUp(query: UsageQuery): Generator<void, Sums> {
    const { by, thenBy } = query;
    const groupings = thenBy === undefined ? [by] : [by, thenBy];
    const rows = new RowSums({ names: groupings.length, figures: USAGE_FIGURES });
    yield* this.#collect({
      ...query,
      kind: sumKindOf(query),
      names: (table) => groupings.map((name) => columnOf(table, name)),
      figures: USAGE_FIGURES,
      rows,
    });
    return yield* addNamed(rows, query);
  }

  *upstreamDays(query: Span): Generator<void, UpstreamDaySum[]> {
    const sheetOf = this.#sheets.reader();
    const names = ["upstream", "model", "day", "price_version", "has_target_price"];
    const { figures } = SUM_TABLES.upstreams;
    const rows = new RowSums({ names: names.length, figures });
    yield* this.#collect({
      ...query,
      kind: sumKindOf({ ...query, by: "upstream" }),
      names: (table) => names.map((name) => table === "entries" ? ENTRY_NAMES[name] ?? name : name),
      figures,
      rows,
    });
    const sums: UpstreamDaySum[] = [];
    for (const { names: [upstream, model, day, version, hasPrice], figures } of rows.list()) {
      const { saved: _, ...rest } = figures;
      sums.push({
        upstream: String(upstream),
        model: String(model),
        day: Number(day),
        ...(Number(version) > 0 && { sheet: sheetOf(Number(version)) }),
        hasTargetPrice: hasPrice === 1,
        ...rest,
      });
      if (sums.length % ROWS_AT_ONCE === 0) yield;
    }
    return sums;
  }

  *#collect(summed: Summed): Generator<void> {
    this.#savings.refresh();
    const { kind } = summed;
    if (kind === undefined) return yield* this.#addEntries(summed, summed);
    const start = Number(this.#statements.start.get()?.day);
    const head = this.#statements.head();
    const first = firstStep(kind, { head, start });
    const ms = stepMs(SUM_TABLES[kind]);
    const { steps, pieces } = cutSpan(summed, ms);
    yield* this.#addSteps(summed, steps, { head, first });
    for (const piece of pieces) {
      yield;
      const isPruned = kind === "upstreams" && piece.step <= start;
      if (isPruned || this.#isWhole(piece, ms)) {
        yield* this.#addSteps(summed, { from: piece.step, until: piece.step + 1 }, { head, first });
      } else yield* this.#addEntries(summed, piece);
    }
  }

  /** Adds whole days or hours: their sums, and entries that are not in the sums yet. */
  *#addSteps(
    summed: Summed,
    { from, until }: CutSpan["steps"],
    { head, first }: { head: SumsHead; first: number },
  ): Generator<void> {
    const { kind } = summed;
    if (kind === undefined) return;
    const table = SUM_TABLES[kind];
    const old = { from, until: Math.min(until, first) };
    if (old.from < old.until) {
      if (kind === "upstreams" && this.#hasOldSums(summed)) yield* this.#addSums(summed, OLD_DAYS, old);
      else yield* this.#addEntries(summed, msOf(table, old));
    }
    const later = { from: Math.max(from, first), until };
    if (later.from >= later.until) return;
    yield* this.#addSums(summed, table, later);
    yield* this.#addTail(summed, msOf(table, later), head.seq);
  }

  #hasOldSums({ names }: Summed): boolean {
    return !names("days").some((name) => !["day", ...OLD_DAYS.names].includes(name));
  }

  *#addSums(summed: Summed, table: SumTable, steps: CutSpan["steps"]): Generator<void> {
    const add = this.#select(summed, { table: table.table, range: rangeOf(table), from: table.table });
    for (const range of this.#ranges(table, steps)) {
      add(range);
      yield;
    }
  }

  /** Adds the entries of a period that are not in the sums: those after a number. */
  *#addTail(summed: Summed, { since, until }: MsSpan, after: number): Generator<void> {
    const last = Number(this.#statements.last.get()?.seq ?? 0);
    if (last <= after) return;
    if (last - after > SHORT_TAIL) return yield* this.#addEntries(summed, { since, until }, after);
    const range = "seq > ? AND seq <= ? AND at >= ? AND at < ?";
    const add = this.#select(summed, { table: "entries", range, from: "entries" });
    for (let seq = after; seq < last; seq += ROWS_AT_ONCE) {
      add([seq, Math.min(last, seq + ROWS_AT_ONCE), since, until]);
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
    const add = this.#select(summed, { table: "entries", range, from });
    let cursor = [since - 1, Number.MAX_SAFE_INTEGER];
    for (;;) {
      const row = entryEnd.get(...driving.slice(1), ...cursor, until);
      const end = row === undefined ? [until - 1, Number.MAX_SAFE_INTEGER] : [Number(row.at), Number(row.seq)];
      add([...cursor, ...end, after]);
      if (row === undefined) return;
      cursor = end;
      yield;
    }
  }

  /** Prepares adding the rows of a range. */
  #select(
    { names, figures, rows, only = {} }: Summed,
    { table, range, from }: { table: string; range: string; from: string },
  ): (range: readonly KeyValue[]) => void {
    const [filter, ...values] = allOf(conditionsOf(only, DIALECT));
    const known = table === OLD_DAYS.table ? OLD_DAYS.figures : figures;
    const columns = known.map((name) => figureColumns(name, table === "entries" ? ENTRY_FIGURES[name] ?? name : name));
    const joined = table === "entries" ? "LEFT JOIN sheet_savings ON version = price_version" : "";
    const statement = this.#prepare(
      `SELECT ${[...names(table), ...columns].join(", ")} FROM ${from} ${joined}
       WHERE ${range} AND ${filter}`,
      { asArrays: true },
    );
    return (range) => {
      const found: readonly object[] = statement.all(...range, ...values);
      // Deno Deploy's version has no setReturnArrays().
      rows.add(found.map((row) => Array.isArray(row) ? row : Object.values(row)));
    };
  }

  #prepare(text: string, { asArrays = false } = {}): ReturnType<DatabaseSync["prepare"]> {
    let statement = this.#prepared.get(text);
    if (statement === undefined) {
      statement = this.#db.prepare(text);
      if (asArrays) (statement as ArrayStatement).setReturnArrays?.(true);
      else statement.setReadBigInts(true);
      this.#prepared.set(text, statement);
    }
    return statement;
  }

  /** Returns whether a period covers all entries of its day or hour. */
  #isWhole({ step, since, until }: CutSpan["pieces"][number], ms: number): boolean {
    const { outside } = this.#statements;
    return outside.get(step * ms, since) === undefined && outside.get(until, (step + 1) * ms) === undefined;
  }

  /** Key ranges of the sums between two days or hours, each read by one statement; `until` is exclusive. */
  *#ranges({ table, step, names }: SumTable, { from, until }: CutSpan["steps"]): Generator<KeyValue[]> {
    const key = [step, ...names];
    const columns = key.join(", ");
    const rangeEnd = this.#prepare(
      `SELECT ${columns} FROM ${table} WHERE (${columns}) > (${marks(key)}) AND ${step} < ?
       ORDER BY ${columns} LIMIT 1 OFFSET ${ROWS_AT_ONCE - 1}`,
    );
    const before = (step: number): KeyValue[] => [step - 1, ...names.map(() => LAST)];
    for (let cursor = before(from);;) {
      const row = rangeEnd.get(...cursor, until);
      const end = row === undefined ? before(until) : key.map((name) => row[name] as KeyValue);
      yield [...cursor, ...end];
      if (row === undefined) return;
      cursor = end;
    }
  }
}

/** Unix milliseconds; `until` is exclusive. */
type MsSpan = Pick<UsageQuery, "since" | "until">;

function msOf(table: SumTable, { from, until }: CutSpan["steps"]): MsSpan {
  const ms = stepMs(table);
  return { since: from * ms, until: until * ms };
}

/** The first day or hour of the sums. Those of end users are deleted with the entries of their days. */
function firstStep(kind: SumKind, { head, start }: { head: SumsHead; start: number }): number {
  if (kind === "hours") return head.firstHour;
  return kind === "users" ? Math.max(head.firstDay, start + 1) : head.firstDay;
}

function marks(names: readonly string[]): string {
  return names.map(() => "?").join(", ");
}

function rangeOf({ step, names }: SumTable): string {
  const key = [step, ...names];
  return `(${key.join(", ")}) > (${marks(key)}) AND (${key.join(", ")}) <= (${marks(key)})`;
}

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
  if (table === "entries") return ENTRY_NAMES[COLUMNS[by]] ?? COLUMNS[by];
  if (table !== SUM_TABLES.hours.table) return COLUMNS[by];
  return by === "hour" ? "hour" : by === "day" ? `hour / ${DAY_MS / TIME_STEPS.hour.ms}` : COLUMNS[by];
}

/** Sums by names for people: a row counts once for each of its tags. */
function* addNamed(rows: RowSums, { by, thenBy }: UsageQuery): Generator<void, Sums> {
  const namesOf = (by: UsageBy, value: unknown) => by === "tag" ? tagNames(String(value)) : [sumName(by, value)];
  const total = new Sums();
  let count = 0;
  for (const { names, figures } of rows.list()) {
    for (const name of namesOf(by, names[0])) {
      for (const thenName of thenBy === undefined ? [undefined] : namesOf(thenBy, names[1])) {
        total.add({ name, ...(thenName !== undefined && { thenName }) }, figures);
      }
    }
    if (++count % ROWS_AT_ONCE === 0) yield;
  }
  return total;
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
type KeyValue = number | bigint | string | Uint8Array;
