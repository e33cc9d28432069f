/** The state that survives a process: a store in memory for thousands of runs, in a file or a database for some. */
import { Secret } from "../../../lib/secret.ts";
import type { LedgerStore } from "../../../lib/store/ledger.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import { connect } from "../../../lib/store/postgres/client.ts";
import { openPostgresLedger } from "../../../lib/store/postgres/ledger.ts";
import { openSqliteStore } from "../../../lib/store/sqlite/store.ts";
import { freshDatabase } from "../../support/databases.ts";
import { TABLES } from "../../store/postgres/ledgers.ts";
import type { Clock } from "./clock.ts";

/** A disk with a ledger on it. */
export interface Disk {
  /** The currently open ledger. */
  readonly ledger: LedgerStore;
  /** Kills the process; another one opens the state. */
  crash(): Promise<void>;
  close(): Promise<void>;
}

/** A disk in memory. Opening a ledger voids the holds of dead processes, which is simulated here. */
export function openMemoryDisk(change: (store: LedgerStore) => LedgerStore = (store) => store): Disk {
  const ledger = change(openMemoryStore().ledger);
  return {
    ledger,
    async crash() {
      await ledger.expire(Number.MAX_SAFE_INTEGER);
    },
    close: () => Promise.resolve(),
  };
}

/** A real file. A process that dies leaves its files as they are: the next one gets a copy made while they were open. */
export function openSqliteDisk(folder: string): Disk {
  let life = 0;
  const pathOf = () => `${folder}/life-${life}.db`;
  let store = openSqliteStore(pathOf(), { own: true });
  return {
    get ledger() {
      return store.ledger;
    },
    async crash() {
      const dead = pathOf();
      life++;
      for (const part of ["", "-wal"]) await Deno.copyFile(`${dead}${part}`, `${pathOf()}${part}`);
      await store.close();
      store = openSqliteStore(pathOf(), { own: true });
    },
    close: () => store.close(),
  };
}

/** Passes disks in one Postgres database to a test, one after the other, each empty at first. */
export async function withPostgresDisks(test: (disk: (clock: Clock) => Promise<Disk>) => Promise<void>): Promise<void> {
  await using database = await freshDatabase();
  const url = new Secret(database.url);
  const beside = connect(url, 1);
  try {
    await test(async (clock) => {
      await beside.unsafe(`DROP SCHEMA public CASCADE; CREATE SCHEMA public; ${TABLES}; ${SERVER_CLOCK}`);
      return openPostgresDisk({ url, beside, clock });
    });
  } finally {
    await beside.end({ timeout: 1 });
  }
}

/** Replaces the server's clock by the test's. */
const SERVER_CLOCK = `
  CREATE TABLE test_clock AS SELECT 0::bigint AS ms;
  CREATE OR REPLACE FUNCTION ledger_clock() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT ms FROM test_clock'`;

interface PostgresParts {
  url: Secret;
  beside: ReturnType<typeof connect>;
  clock: Clock;
}

/**
 * Processes do not notice the death of another: its holds expire with their lease, by the server's clock. That clock
 * never jumps, and starts now, because holds from before a server's start are not voided.
 */
function openPostgresDisk({ url, beside, clock }: PostgresParts): Disk {
  const begun = Date.now();
  let reported = -1;

  async function tellTime(): Promise<void> {
    const elapsed = Math.floor(clock.monotonic());
    if (elapsed === reported) return;
    await beside.unsafe(`UPDATE test_clock SET ms = ${begun + elapsed}`);
    reported = elapsed;
  }

  function open() {
    const sql = connect(url, 2);
    const ledger = openPostgresLedger(sql, { now: clock.now, monotonic: clock.monotonic });
    return { sql, ledger: before(ledger, tellTime) };
  }

  let life = open();
  return {
    get ledger() {
      return life.ledger;
    },
    async crash() {
      await life.sql.end({ timeout: 1 });
      life = open();
    },
    close: () => life.sql.end({ timeout: 1 }),
  };
}

/** Runs a function before each call of a store. */
function before(store: LedgerStore, first: () => Promise<void>): LedgerStore {
  const then = <Args extends unknown[], Value>(call: (...args: Args) => Promise<Value>) => async (...args: Args) => {
    await first();
    return await call(...args);
  };
  return {
    ...store,
    hold: then(store.hold),
    spending: then(store.spending),
    spenders: then(store.spenders),
    renew: then(store.renew),
    release: then(store.release),
    append: then(store.append),
    expire: then(store.expire),
    holds: then(store.holds),
    find: then(store.find),
    entries: then(store.entries),
    usage: then(store.usage),
    days: then(store.days),
    prune: then(store.prune),
    start: then(store.start),
  };
}
