/** The sums per day in the SQLite file, and what is worked out from them. */
import type { DatabaseSync } from "node:sqlite";
import type { Spender } from "./accounts.ts";
import { addFigures, cutSpan, DAY_MS, dayOf, figuresOf, nameBy, type Span, Sums } from "./days.ts";
import { type CountRow, toCounts } from "./entry_row.ts";
import type { DaySum, Entry, UsageBy, UsageSum } from "./ledger.ts";

/** Rows that are summed before everything else in the process has its turn: a few milliseconds of work. */
const ROWS_AT_ONCE = 5000;

const COUNTS =
  "requests, failed, prompt, input_cache_read, input_cache_write_5m, input_cache_write_1h, completion, reasoning, images";
const TOKENS = "prompt, input_cache_read, input_cache_write_5m, input_cache_write_1h, completion, reasoning";

/** Columns that name what is summed. */
const NAMES: Readonly<Record<UsageBy, string>> = {
  key: "key_id",
  group: "group_name",
  model: "model",
  // In a query over one day all have the same.
  day: "''",
};

/** The sums of a database. */
export interface SumRows {
  /** Adds entries to the sums of their days. Within the transaction that enters them. */
  add(entries: readonly Entry[]): void;
  chargedSince(spender: Spender): bigint;
  usage(query: { since: number; until: number; by: UsageBy }): Promise<UsageSum[]>;
  days(since: number, enough: number): DaySum[];
}

/** Opens the sums of a database that is up to date. `goneDay`: the last day that entries were pruned of. */
export function openSumRows(db: DatabaseSync, goneDay: () => number): SumRows {
  const add = prepareAdd(db);
  const charged = { key: prepareCharged(db, "key_id"), group: prepareCharged(db, "group_name") };
  const usage = prepareUsage(db, goneDay);
  const columns = `day, key_id, group_name, model, ${COUNTS}, CAST(cost AS TEXT) AS cost,
    CAST(overrun AS TEXT) AS overrun`;
  const days = db.prepare(`SELECT ${columns} FROM days WHERE day >= ? AND day <= ? ORDER BY day`);
  const dayOfNth = db.prepare("SELECT day FROM days WHERE day >= ? ORDER BY day LIMIT 1 OFFSET ?");

  return {
    add,
    chargedSince: ({ scope, id, since }) => charged[scope](id, since),
    usage,
    days(since, enough) {
      const last = Number.isSafeInteger(enough) ? dayOfNth.get(since, enough - 1)?.day : undefined;
      return days.all(since, last ?? Number.MAX_SAFE_INTEGER).map((row) => ({
        day: Number(row.day),
        keyId: String(row.key_id),
        group: String(row.group_name),
        model: String(row.model),
        ...toCounts(row as unknown as CountRow),
        cost: BigInt(String(row.cost)),
        overrun: BigInt(String(row.overrun)),
      }));
    },
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
      add.run(
        day,
        keyId,
        group,
        model,
        requests,
        failed,
        tokens.prompt,
        tokens.input_cache_read,
        tokens.input_cache_write_5m,
        tokens.input_cache_write_1h,
        tokens.completion,
        tokens.reasoning,
        images,
        cost,
        overrun,
      );
    }
  };
}

/** The sums of entries. Few differ within one write, and neighbours are often alike: they are looked for from the end. */
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

function prepareUsage(db: DatabaseSync, goneDay: () => number): SumRows["usage"] {
  const nextDay = db.prepare("SELECT min(day) AS day FROM days WHERE day >= ?");
  const outside = db.prepare(
    `SELECT 1 FROM entries WHERE (at >= ? AND at < ?) LIMIT 1`,
  );
  const chunkEnd = db.prepare(
    `SELECT at, seq FROM entries WHERE (at, seq) > (?, ?) AND at < ? ORDER BY at, seq LIMIT 1 OFFSET ${
      ROWS_AT_ONCE - 1
    }`,
  );
  const sums = COUNTS.split(", ").map((name) => `sum(${name}) AS ${name}`).join(", ");
  const figures = `${halves("cost")}, ${halves("overrun")}, count(*) AS summed`;
  const ofDay = byName((name) => `SELECT ${name} AS name, ${sums}, ${figures} FROM days WHERE day = ? GROUP BY 1`);
  const ofEntries = byName((name) =>
    `SELECT ${name} AS name, count(*) AS requests, sum(ending IN ('failed', 'refused', 'lost')) AS failed,
       ${TOKENS.split(", ").map((kind) => `sum(${kind}) AS ${kind}`).join(", ")}, sum(images) AS images, ${figures}
     FROM entries WHERE (at, seq) > (?, ?) AND (at, seq) <= (?, ?) GROUP BY 1`
  );

  function byName(text: (column: string) => string): (by: UsageBy) => ReturnType<DatabaseSync["prepare"]> {
    return (by) => {
      const statement = db.prepare(text(NAMES[by]));
      statement.setReadBigInts(true);
      return statement;
    };
  }

  /** True where all entries of the day lie within the piece, or not all are there: the sums of the day are taken then. */
  function isWhole({ day, since, until }: Span["pieces"][number]): boolean {
    return day <= goneDay() ||
      (outside.get(day * DAY_MS, since) === undefined && outside.get(until, (day + 1) * DAY_MS) === undefined);
  }

  return async function usage({ since, until, by }) {
    const { whole, pieces } = cutSpan({ since, until });
    const total = new Sums();
    let rows = 0;

    async function take(found: Record<string, unknown>[], day: number): Promise<void> {
      for (const row of found) {
        const name = by === "day" ? nameBy(by, { day, keyId: "", group: "", model: "" }) : String(row.name);
        total.add(name, {
          ...toCounts(row as unknown as CountRow),
          cost: toAmount(row.cost_high, row.cost_low),
          overrun: toAmount(row.overrun_high, row.overrun_low),
        });
        rows += Number(row.summed);
      }
      if (rows < ROWS_AT_ONCE) return;
      rows = 0;
      await new Promise((resolve) => setTimeout(resolve, 0));
    }

    const [dayRows, entryRows] = [ofDay(by), ofEntries(by)];
    for (let from = whole.from; from < whole.until; from++) {
      const next = nextDay.get(from)?.day;
      if (typeof next !== "number" || next >= whole.until) break;
      from = next;
      await take(dayRows.all(from), from);
    }
    for (const piece of pieces) {
      if (isWhole(piece)) {
        await take(dayRows.all(piece.day), piece.day);
        continue;
      }
      for (let [at, seq] = [piece.since - 1, Number.MAX_SAFE_INTEGER];;) {
        const end = chunkEnd.get(at, seq, piece.until) as { at: number; seq: number } | undefined;
        const [lastAt, lastSeq] = end === undefined ? [piece.until - 1, Number.MAX_SAFE_INTEGER] : [end.at, end.seq];
        await take(entryRows.all(at, seq, lastAt, lastSeq), piece.day);
        if (end === undefined) break;
        [at, seq] = [lastAt, lastSeq];
      }
    }
    return total.list();
  };
}

/** Sums in two halves: SQLite's own sums fail where they pass 2^63, which is 9.2 million USD. */
function halves(name: string): string {
  return `sum(${name} >> 32) AS ${name}_high, sum(${name} & 4294967295) AS ${name}_low`;
}

function toAmount(high: unknown, low: unknown): bigint {
  return typeof high === "bigint" && typeof low === "bigint" ? (high << 32n) + low : 0n;
}
