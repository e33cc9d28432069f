/** Opens the reports of a SQLite file: sums over a period, searches, and charged amounts. */
import { DatabaseSync } from "node:sqlite";
import { runSliced } from "../../scheduler.ts";
import type { ReadCharged } from "./accounts.ts";
import type { Reports } from "./ledger.ts";
import { prepareDurations } from "./durations.ts";
import { prepareSearch } from "./search.ts";
import { whenFree } from "./transaction.ts";
import { prepareUsage } from "./usage_sums.ts";
import { prepareTopUsers } from "./user_sums.ts";

/** Reports of a file. Each reads a snapshot from its start. */
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
  const sums = openReader(file, prepareUsage);
  const searches = openReader(file, (db) => ({
    search: prepareSearch(db),
    topUsers: prepareTopUsers(db),
    durations: prepareDurations(db),
  }));
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

/** Runs work in order, on a connection that is opened at the first use. */
interface Reader<Work> {
  /** Runs work in a transaction, after all earlier work. */
  runInOrder<T>(begin: (work: Work) => Generator<void, T>, signal?: AbortSignal): Promise<T>;
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
    runInOrder(begin, signal) {
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
