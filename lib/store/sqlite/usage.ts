/** Reports of the SQLite file: sums over a period, searches, and amounts charged. */
import { DatabaseSync } from "node:sqlite";
import { runSliced } from "../../scheduler.ts";
import type { ReadCharged } from "./accounts.ts";
import type { Reports } from "./ledger.ts";
import { prepareDurations } from "./durations.ts";
import { prepareSearch } from "./search.ts";
import { whenFree } from "./transaction.ts";
import { prepareUsage } from "./usage_sums.ts";
import { prepareTopUsers } from "./user_sums.ts";

/** Reports of a file, each from a snapshot at the start of the work. */
export interface SqliteReports extends Reports {
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
  const searches = openReader(file, (db) => ({
    search: prepareSearch(db),
    topUsers: prepareTopUsers(db),
    durations: prepareDurations(db),
  }));
  return {
    usage: async (query, signal) => (await sums.runInTurn((work) => work.sumUp(query), signal)).list(),
    upstreamDays: (query, signal) => sums.runInTurn((work) => work.upstreamDays(query), signal),
    durations: (spans, signal) => searches.runInTurn(({ durations }) => durations(spans), signal),
    search: (query, signal) => searches.runInTurn(({ search }) => search(query), signal),
    topUsers: (of, signal) => searches.runInTurn(({ topUsers }) => topUsers(of), signal),
    charged: (spender, started) => sums.runInTurn((work) => work.charge(spender, started)),
    close() {
      sums.close();
      searches.close();
    },
  };
}

/** Runs work one after the other on a connection opened at the first use. */
interface Reader<Work> {
  runInTurn<T>(begin: (work: Work) => Generator<void, T>, signal?: AbortSignal): Promise<T>;
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
      // Only temporary tables have changed.
      if (!isClosed) db.exec("COMMIT");
    }
  }

  return {
    runInTurn(begin, signal) {
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
