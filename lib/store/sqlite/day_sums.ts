/** The sums per day in the SQLite file, and the reports made from them. */
import type { DatabaseSync } from "node:sqlite";
import { addFigures, dayOf, figuresOf, tokenCounts } from "../days.ts";
import { type CountRow, toCounts } from "../entry_row.ts";
import type { DaySum, Entry, Spender } from "../ledger.ts";

/** Columns of `days` with counts; amounts are separate. */
export const COUNTS =
  "requests, failed, prompt, input_cache_read, input_cache_write_5m, input_cache_write_1h, completion, reasoning, images";

/** The sums of a database. */
export interface SumRows {
  /** Adds entries to the sums of their days, within the transaction that enters them. */
  add(entries: readonly Entry[]): void;
  chargedSince(spender: Spender & { scope: "key" | "group" }): bigint;
  /** As `LedgerStore.days`, in slices; each slice reads the current sums. */
  days(since: number, maxRows: number): Generator<void, DaySum[]>;
}

/** Sorts after every text in SQLite. */
export const LAST = new Uint8Array();

/** Sums read per slice: about a millisecond of work. */
const ROWS_AT_ONCE = 256;

/** Opens the sums of a migrated database. */
export function openSumRows(db: DatabaseSync): SumRows {
  const add = prepareAdd(db);
  const charged = { key: prepareCharged(db, "key_id"), group: prepareCharged(db, "group_name") };
  const columns = `day, key_id, group_name, model, ${COUNTS}, CAST(cost AS TEXT) AS cost,
    CAST(overrun AS TEXT) AS overrun`;
  const days = db.prepare(
    `SELECT ${columns} FROM days WHERE (day, key_id, group_name, model) > (?, ?, ?, ?) AND day <= ?
     ORDER BY day, key_id, group_name, model LIMIT ${ROWS_AT_ONCE}`,
  );
  const dayOfNth = db.prepare("SELECT day FROM days WHERE day >= ? ORDER BY day LIMIT 1 OFFSET ?");

  return {
    add,
    chargedSince: ({ scope, id, since }) => charged[scope](id, since),
    *days(since, enough) {
      const last = Number.isSafeInteger(enough) ? dayOfNth.get(since, enough - 1)?.day : undefined;
      const sums: DaySum[] = [];
      // Sorts after every sum of the previous day.
      let cursor: (number | string | Uint8Array)[] = [since - 1, LAST, LAST, LAST];
      for (;;) {
        const rows = days.all(...cursor, last ?? Number.MAX_SAFE_INTEGER);
        for (const row of rows) sums.push(toDaySum(row));
        const end = sums.at(-1);
        if (rows.length < ROWS_AT_ONCE || end === undefined) return sums;
        cursor = [end.day, end.keyId, end.group, end.model];
        yield;
      }
    },
  };
}

function toDaySum(row: Record<string, unknown>): DaySum {
  return {
    day: Number(row.day),
    keyId: String(row.key_id),
    group: String(row.group_name),
    model: String(row.model),
    ...toCounts(row as unknown as CountRow),
    cost: BigInt(String(row.cost)),
    overrun: BigInt(String(row.overrun)),
  };
}

function prepareAdd(db: DatabaseSync): SumRows["add"] {
  const names = [...COUNTS.split(", "), "cost", "overrun"];
  const add = db.prepare(
    `INSERT INTO days (day, key_id, group_name, model, ${names.join(", ")})
     VALUES (?, ?, ?, ?, ${names.map(() => "?").join(", ")})
     ON CONFLICT DO UPDATE SET ${names.map((name) => `${name} = ${name} + excluded.${name}`).join(", ")}`,
  );
  return (entries) => {
    for (const { day, keyId, group, model, requests, failed, tokens, images, cost, overrun } of daySums(entries)) {
      add.run(day, keyId, group, model, requests, failed, ...tokenCounts(tokens), images, cost, overrun);
    }
  };
}

/** Sums entries. A batch has few distinct sums and neighbours often share one, so the search starts at the end. */
function daySums(entries: readonly Entry[]): DaySum[] {
  const sums: DaySum[] = [];
  for (const entry of entries) {
    const { at, keyId, group, model } = entry;
    const day = dayOf(at);
    const sum = sums.findLast((sum) =>
      sum.day === day && sum.keyId === keyId && sum.group === group && sum.model === model
    );
    const figures = figuresOf(entry);
    if (sum !== undefined) addFigures(sum, figures);
    else sums.push({ day, keyId, group, model, ...figures, tokens: { ...figures.tokens } });
  }
  return sums;
}

function prepareCharged(db: DatabaseSync, column: "key_id" | "group_name"): (id: string, since: number) => bigint {
  const sum = db.prepare(`SELECT ${halves("cost")} FROM days WHERE ${column} = ? AND day >= ?`);
  sum.setReadBigInts(true);
  return (id, since) => {
    const row = sum.get(id, since);
    return toAmount(row?.cost_high, row?.cost_low);
  };
}

/** Splits a value into two sums, because SQLite's `sum` fails beyond 2^63 (9.2 million USD). */
export function halves(name: string, value = name): string {
  return `sum((${value}) >> 32) AS ${name}_high, sum((${value}) & 4294967295) AS ${name}_low`;
}

/** Joins two halves, read as `bigint`; 0 for no rows. */
export function toAmount(high: unknown, low: unknown): bigint {
  return typeof high === "bigint" && typeof low === "bigint" ? (high << 32n) + low : 0n;
}
