/** Opens the reports of a SQLite file: sums over a period, searches, and charged amounts. */
import { DatabaseSync } from "node:sqlite";
import { createSerializer, runSliced, runSlicedNow, runToEnd } from "../../scheduler.ts";
import type { Durations, DurationSpan } from "../ledger.ts";
import { FAILED_SQL } from "../days.ts";
import type { ReadCharged } from "./accounts.ts";
import type { Reports } from "./ledger.ts";
import { prepareSearch } from "./search.ts";
import { whenFree } from "./transaction.ts";
import { UsageWork } from "./usage_sums.ts";
import { prepareTopUsers } from "./user_sums.ts";

/** Reports of a database. Those of a file read a snapshot from their start. */
export interface SqliteReports extends Reports {
  /** Reads the amount that a group was charged. */
  charged: ReadCharged;
  /** Closes the connections. Reports in progress fail. */
  close(): void;
}

/**
 * Opens the reports of a migrated file. Sums run one after the other, and so do searches, each of these kinds on a
 * connection of its own: a read-only transaction sees one snapshot of the file and blocks no writer.
 */
export function openSqliteReports(file: string): SqliteReports {
  return reportsOf(openReader(file, (db) => new UsageWork(db)), openReader(file, prepareSearches));
}

/**
 * Opens the reports of a migrated database in memory. It has a single connection without snapshots, so sums are read
 * without pauses.
 */
export function openMemoryReports(db: DatabaseSync): SqliteReports {
  let usage: UsageWork | undefined;
  const searches = prepareSearches(db);
  const close = () => {};
  return reportsOf({
    async runInOrder(begin, signal) {
      signal?.throwIfAborted();
      return await runToEnd(begin(usage ??= new UsageWork(db)));
    },
    close,
  }, { runInOrder: (begin, signal) => runSlicedNow(begin(searches), signal), close });
}

function prepareSearches(db: DatabaseSync) {
  return { search: prepareSearch(db), topUsers: prepareTopUsers(db), durations: prepareDurations(db) };
}

function reportsOf(
  sums: Reader<UsageWork>,
  searches: Reader<ReturnType<typeof prepareSearches>>,
): SqliteReports {
  return {
    usage: async (query, signal) => (await sums.runInOrder((work) => work.sumUp(query), signal)).list(),
    upstreamDays: (query, signal) => sums.runInOrder((work) => work.upstreamDays(query), signal),
    durations: (spans, signal) => searches.runInOrder(({ durations }) => durations(spans), signal),
    search: (query, signal) => searches.runInOrder(({ search }) => search(query), signal),
    topUsers: (of, signal) => searches.runInOrder(({ topUsers }) => topUsers(of), signal),
    charged: (spender, begun) => sums.runInOrder((work) => work.charge(spender, begun)),
    close() {
      sums.close();
      searches.close();
    },
  };
}

interface Reader<Work> {
  /** Runs work after all earlier work. */
  runInOrder<T>(begin: (work: Work) => Generator<void, T>, signal?: AbortSignal): Promise<T>;
  close(): void;
}

/** Opens a reader of a file, with a connection from its first use on. Each work has a transaction. */
function openReader<Work>(file: string, prepare: (db: DatabaseSync) => Work): Reader<Work> {
  let opened: { db: DatabaseSync; work: Work } | undefined;
  let isClosed = false;
  const inTurn = createSerializer();

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
    // Another process may have the log locked at this moment, such as the first one that opens the file after a crash.
    const { db, work } = await whenFree(open);
    db.exec("BEGIN");
    try {
      return await runSliced(begin(work), signal);
    } finally {
      // Ends the snapshot. Only temporary tables have changed.
      if (!isClosed) db.exec("COMMIT");
    }
  }

  return {
    runInOrder: (begin, signal) => inTurn(() => run(begin, signal)),
    close() {
      isClosed = true;
      opened?.db.close();
      opened = undefined;
    },
  };
}

/** Prepares `LedgerStore.durations` of a migrated database, with a pause after each period. */
function prepareDurations(db: DatabaseSync): (spans: readonly DurationSpan[]) => Generator<void, Durations[]> {
  const statement = db.prepare(
    `SELECT CASE WHEN ${FAILED_SQL} THEN NULL ELSE first_ms END AS first, total_ms AS total
     FROM entries INDEXED BY entries_by_time WHERE at >= ? AND at < ? ORDER BY at, seq LIMIT ?`,
  );
  return function* (spans) {
    const result: Durations[] = [];
    for (const { since, until, limit } of spans) {
      const durations: Durations = { read: 0, answered: [] };
      for (const { first, total } of statement.all(since, until, limit)) {
        durations.read++;
        if (first !== null) durations.answered.push({ firstMs: Number(first), totalMs: Number(total) });
      }
      result.push(durations);
      yield;
    }
    return result;
  };
}
