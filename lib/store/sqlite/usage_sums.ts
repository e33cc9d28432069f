/** Adds up the usage of a period from a SQLite database, with pauses. */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type CutSpan, cutSpan, type SumKind, sumKindOf, Sums } from "../days.ts";
import type { Spender, SumsHead, UpstreamDaySum, UsageBy, UsageQuery } from "../ledger.ts";
import { DAYS, GROUPING_COLUMNS, SHORT_TAIL, stepMs, SUM_TABLES, type SumTable } from "../sums.ts";
import { allOf, conditionsOf } from "../search_sql.ts";
import { AFTER_ALL_TEXTS, joinHalves, sumsOfHalves } from "./day_sums.ts";
import { openSheetRows } from "./ledger_rows.ts";
import { figureColumns, RowSums } from "./row_sums.ts";
import { DIALECT, entryIndexFor } from "./dialect.ts";
import { ENTRY_FIGURES, ENTRY_NAMES, openSavings, prepareSumsHead } from "./sums.ts";

/** Rows that are added up between two pauses: about a millisecond of work, at most three. */
const ROWS_PER_STEP = 500;

/** A statement with a method of Node that Deno's types lack. */
type ArrayStatement = StatementSync & { setReturnArrays?(isOn: boolean): void };

/** A period in Unix milliseconds, and a filter. */
type Span = Pick<UsageQuery, "since" | "until" | "only">;

/** A period and a filter, with the names and figures of the result, and the collected sums. */
interface SumsQuery extends Span {
  /** The sums that have the names; undefined: only single entries have. */
  kind: SumKind | undefined;
  /** Returns the selected columns for the names in a table of sums, or in `entries`. */
  names: (table: string) => readonly string[];
  figures: readonly string[];
  rows: RowSums;
}

const USAGE_FIGURES = SUM_TABLES.users.figures;

/**
 * Adds up usage of a migrated database, with a pause after every few rows. Each call must be within one transaction,
 * which is its snapshot.
 */
export class UsageWork {
  readonly #db: DatabaseSync;
  readonly #statements: ReturnType<typeof prepareStatements>;
  readonly #refreshSavings: () => void;
  readonly #sheets: ReturnType<typeof openSheetRows>;
  readonly #prepared = new Map<string, ReturnType<DatabaseSync["prepare"]>>();

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#statements = prepareStatements(db);
    this.#sheets = openSheetRows(db);
    this.#refreshSavings = openSavings(db, this.#sheets);
  }

  /** Adds up what a group was charged since a day: see `ReadCharged`. */
  *charge({ id, since }: Spender, begun: () => void): Generator<void, bigint> {
    // The first read fixes the snapshot.
    this.#statements.start.get();
    begun();
    let sum = 0n;
    const statement = this.#prepare(
      `SELECT ${sumsOfHalves("cost")} FROM days WHERE ${rangeOf(DAYS)} AND group_name = ?`,
    );
    for (const range of this.#ranges(DAYS, { from: since, until: Number.MAX_SAFE_INTEGER })) {
      const row = statement.get(...range, id);
      sum += joinHalves(row?.cost_high, row?.cost_low);
      yield;
    }
    return sum;
  }

  /** Implements `LedgerStore.usage`. */
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
    const sums = new Sums();
    let count = 0;
    for (const { names, figures } of rows.list()) {
      sums.addRow(query, names, figures);
      if (++count % ROWS_PER_STEP === 0) yield;
    }
    return sums;
  }

  /** Implements `LedgerStore.upstreamDays`. */
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
      const { saved: _, ...otherFigures } = figures;
      sums.push({
        upstream: String(upstream),
        model: String(model),
        day: Number(day),
        ...(Number(version) > 0 && { sheet: sheetOf(Number(version)) }),
        hasTargetPrice: hasPrice === 1,
        ...otherFigures,
      });
      if (sums.length % ROWS_PER_STEP === 0) yield;
    }
    return sums;
  }

  /** Adds all rows of the period: whole days or hours from sums, parts of them from entries. */
  *#collect(sumsQuery: SumsQuery): Generator<void> {
    this.#refreshSavings();
    const { kind } = sumsQuery;
    if (kind === undefined) return yield* this.#addEntries(sumsQuery, sumsQuery);
    const start = Number(this.#statements.start.get()?.day);
    const head = this.#statements.head();
    const first = firstStep(kind, { head, start });
    const ms = stepMs(SUM_TABLES[kind]);
    const { whole, pieces } = cutSpan(sumsQuery, ms);
    yield* this.#addSteps(sumsQuery, whole, { head, first });
    for (const piece of pieces) {
      yield;
      const isPruned = kind === "upstreams" && piece.step <= start;
      if (isPruned || this.#isWhole(piece, ms)) {
        yield* this.#addSteps(sumsQuery, { from: piece.step, until: piece.step + 1 }, { head, first });
      } else yield* this.#addEntries(sumsQuery, piece);
    }
  }

  /** Adds whole days or hours: their sums, and the entries that are not in the sums yet. */
  *#addSteps(
    sumsQuery: SumsQuery,
    { from, until }: CutSpan["whole"],
    { head, first }: { head: SumsHead; first: number },
  ): Generator<void> {
    const { kind } = sumsQuery;
    if (kind === undefined) return;
    const table = SUM_TABLES[kind];
    const old = { from, until: Math.min(until, first) };
    if (old.from < old.until) {
      if (kind === "upstreams" && this.#canUseDays(sumsQuery)) yield* this.#addSums(sumsQuery, DAYS, old);
      else yield* this.#addEntries(sumsQuery, msOf(table, old));
    }
    const later = { from: Math.max(from, first), until };
    if (later.from >= later.until) return;
    yield* this.#addSums(sumsQuery, table, later);
    yield* this.#addTail(sumsQuery, msOf(table, later), head.seq);
  }

  /** Returns whether the table `days` has the names. */
  #canUseDays({ names }: SumsQuery): boolean {
    return !names("days").some((name) => !["day", ...DAYS.names].includes(name));
  }

  /** Adds the sums of some days or hours. */
  *#addSums(sumsQuery: SumsQuery, table: SumTable, steps: CutSpan["whole"]): Generator<void> {
    const add = this.#select(sumsQuery, { table: table.table, range: rangeOf(table), from: table.table });
    for (const range of this.#ranges(table, steps)) {
      add(range);
      yield;
    }
  }

  /** Adds the entries of a period that are not in the sums, that is, the entries after a seq. */
  *#addTail(sumsQuery: SumsQuery, { since, until }: MsSpan, after: number): Generator<void> {
    const last = Number(this.#statements.last.get()?.seq ?? 0);
    if (last <= after) return;
    if (last - after > SHORT_TAIL) return yield* this.#addEntries(sumsQuery, { since, until }, after);
    const range = "seq > ? AND seq <= ? AND at >= ? AND at < ?";
    const add = this.#select(sumsQuery, { table: "entries", range, from: "entries" });
    for (let seq = after; seq < last; seq += ROWS_PER_STEP) {
      add([seq, Math.min(last, seq + ROWS_PER_STEP), since, until]);
      yield;
    }
  }

  /** Adds the entries of a period, only those after a seq. */
  *#addEntries(sumsQuery: SumsQuery, { since, until }: MsSpan, after = 0): Generator<void> {
    const { index, condition } = entryIndexFor(sumsQuery.only);
    const from = `entries INDEXED BY ${index}`;
    const entryEnd = this.#prepare(
      `SELECT at, seq FROM ${from} WHERE ${condition[0]} AND (at, seq) > (?, ?) AND at < ?
       ORDER BY at, seq LIMIT 1 OFFSET ${ROWS_PER_STEP - 1}`,
    );
    const range = "(at, seq) > (?, ?) AND (at, seq) <= (?, ?) AND seq > ?";
    const add = this.#select(sumsQuery, { table: "entries", range, from });
    let cursor = [since - 1, Number.MAX_SAFE_INTEGER];
    for (;;) {
      const row = entryEnd.get(...condition.slice(1), ...cursor, until);
      const end = row === undefined ? [until - 1, Number.MAX_SAFE_INTEGER] : [Number(row.at), Number(row.seq)];
      add([...cursor, ...end, after]);
      if (row === undefined) return;
      cursor = end;
      yield;
    }
  }

  /** Returns a function that adds the rows of a range. */
  #select(
    { names, figures, rows, only = {} }: SumsQuery,
    { table, range, from }: { table: string; range: string; from: string },
  ): (range: readonly KeyValue[]) => void {
    const [filter, ...values] = allOf(conditionsOf(only, DIALECT));
    const known = table === DAYS.table ? DAYS.figures : figures;
    const columns = known.map((name) => figureColumns(name, table === "entries" ? ENTRY_FIGURES[name] ?? name : name));
    const joined = table === "entries" ? "LEFT JOIN sheet_savings ON version = price_version" : "";
    const statement = this.#prepare(
      `SELECT ${[...names(table), ...columns].join(", ")} FROM ${from} ${joined}
       WHERE ${range} AND ${filter}`,
      { asArrays: true },
    );
    return (range) => {
      const selected: readonly object[] = statement.all(...range, ...values);
      // The Deno version of Deno Deploy has no setReturnArrays().
      rows.add(selected.map((row) => Array.isArray(row) ? row : Object.values(row)));
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

  /** Returns whether all entries of a day or hour are in this part of it. */
  #isWhole({ step, since, until }: CutSpan["pieces"][number], ms: number): boolean {
    const { outside } = this.#statements;
    return outside.get(step * ms, since) === undefined && outside.get(until, (step + 1) * ms) === undefined;
  }

  /**
   * Yields ranges of primary keys of the sums between two days or hours, each for one statement; `until` is exclusive.
   */
  *#ranges({ table, step, names }: SumTable, { from, until }: CutSpan["whole"]): Generator<KeyValue[]> {
    const key = [step, ...names];
    const columns = key.join(", ");
    const rangeEnd = this.#prepare(
      `SELECT ${columns} FROM ${table} WHERE (${columns}) > (${placeholders(key)}) AND ${step} < ?
       ORDER BY ${columns} LIMIT 1 OFFSET ${ROWS_PER_STEP - 1}`,
    );
    const before = (step: number): KeyValue[] => [step - 1, ...names.map(() => AFTER_ALL_TEXTS)];
    for (let cursor = before(from);;) {
      const row = rangeEnd.get(...cursor, until);
      const end = row === undefined ? before(until) : key.map((name) => row[name] as KeyValue);
      yield [...cursor, ...end];
      if (row === undefined) return;
      cursor = end;
    }
  }
}

/** A period in Unix milliseconds; `until` is exclusive. */
type MsSpan = Pick<UsageQuery, "since" | "until">;

function msOf(table: SumTable, { from, until }: CutSpan["whole"]): MsSpan {
  const ms = stepMs(table);
  return { since: from * ms, until: until * ms };
}

/** Returns the first day or hour of the sums. Sums of end users are deleted with the entries of a day. */
function firstStep(kind: SumKind, { head, start }: { head: SumsHead; start: number }): number {
  if (kind === "hours") return head.firstHour;
  return kind === "users" ? Math.max(head.firstDay, start + 1) : head.firstDay;
}

function placeholders(names: readonly string[]): string {
  return names.map(() => "?").join(", ");
}

/** Returns the condition for a range of primary keys. */
function rangeOf({ step, names }: SumTable): string {
  const key = [step, ...names];
  return `(${key.join(", ")}) > (${placeholders(key)}) AND (${key.join(", ")}) <= (${placeholders(key)})`;
}

function columnOf(table: string, by: UsageBy): string {
  const column = GROUPING_COLUMNS[by];
  if (table === "entries") return ENTRY_NAMES[column] ?? column;
  return by === "day" && table === SUM_TABLES.hours.table ? "hour / 24" : column;
}

function prepareStatements(db: DatabaseSync) {
  return {
    start: db.prepare("SELECT day FROM ledger_start"),
    head: prepareSumsHead(db),
    last: db.prepare("SELECT max(seq) AS seq FROM entries"),
    outside: db.prepare("SELECT 1 FROM entries WHERE at >= ? AND at < ? LIMIT 1"),
  };
}

/** A value of a column of a primary key. */
type KeyValue = number | bigint | string | Uint8Array;
