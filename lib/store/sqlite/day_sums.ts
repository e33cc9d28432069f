/** The sums per day in a SQLite database, which are written with the entries. */
import type { DatabaseSync } from "node:sqlite";
import { addFigures, dayOf, figuresOf, tokenCounts } from "../days.ts";
import { type CountRow, toCounts } from "../entry_row.ts";
import type { DaySum, Entry, Spender } from "../ledger.ts";
import { COUNTS, DAYS } from "../sums.ts";

/** The sums per day of a database. */
export interface SumRows {
  /** Adds entries to the sums of their days. Must be called within the transaction that writes the entries. */
  add(entries: readonly Entry[]): void;
  /** Returns the amount that a key or group was charged since a day. */
  chargedSince(spender: Spender & { scope: "key" | "group" }): bigint;
  /** Implements `LedgerStore.days`, with pauses; each step reads the current sums. */
  days(since: number, enough: number): Generator<void, DaySum[]>;
}

/** A value that SQLite sorts after every text. */
export const AFTER_ALL_TEXTS = new Uint8Array();

/** Sums that are read between two pauses: about a millisecond of work. */
const ROWS_PER_STEP = 256;

/** Opens the sums per day of a migrated database. */
export function openSumRows(db: DatabaseSync): SumRows {
  const add = prepareAdd(db);
  const charged = { key: prepareCharged(db, "key_id"), group: prepareCharged(db, "group_name") };
  const days = db.prepare(
    `SELECT day, key_id, group_name, model, ${COUNTS.join(", ")}, CAST(cost AS TEXT) AS cost,
       CAST(overrun AS TEXT) AS overrun
     FROM days WHERE (day, key_id, group_name, model) > (?, ?, ?, ?) AND day <= ?
     ORDER BY day, key_id, group_name, model LIMIT ${ROWS_PER_STEP}`,
  );
  const dayOfNth = db.prepare("SELECT day FROM days WHERE day >= ? ORDER BY day LIMIT 1 OFFSET ?");

  return {
    add,
    chargedSince: ({ scope, id, since }) => charged[scope](id, since),
    *days(since, enough) {
      const last = Number.isSafeInteger(enough) ? dayOfNth.get(since, enough - 1)?.day : undefined;
      const sums: DaySum[] = [];
      // The cursor begins after every sum of the previous day.
      let cursor: (number | string | Uint8Array)[] = [since - 1, AFTER_ALL_TEXTS, AFTER_ALL_TEXTS, AFTER_ALL_TEXTS];
      for (;;) {
        const rows = days.all(...cursor, last ?? Number.MAX_SAFE_INTEGER);
        for (const row of rows) sums.push(toDaySum(row));
        const end = sums.at(-1);
        if (rows.length < ROWS_PER_STEP || end === undefined) return sums;
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
  const names = DAYS.figures;
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

/**
 * Adds up entries by day, key, group and model. Neighbouring entries often share a sum, so the search starts at the
 * end.
 */
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
  const sum = db.prepare(`SELECT ${sumsOfHalves("cost")} FROM days WHERE ${column} = ? AND day >= ?`);
  sum.setReadBigInts(true);
  return (id, since) => {
    const row = sum.get(id, since);
    return joinHalves(row?.cost_high, row?.cost_low);
  };
}

/**
 * Returns the SQL for the sums of both halves of a value, because SQLite's `sum` fails above 2^63 (9.2 million USD).
 */
export function sumsOfHalves(name: string): string {
  return `sum(${name} >> 32) AS ${name}_high, sum(${name} & 4294967295) AS ${name}_low`;
}

/** Joins the sums of both halves, which are `bigint`. Returns 0 if there were no rows. */
export function joinHalves(high: unknown, low: unknown): bigint {
  return typeof high === "bigint" && typeof low === "bigint" ? (high << 32n) + low : 0n;
}
