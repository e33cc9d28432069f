/** What outlives a process: its store, in memory for thousands of runs, in a file or a database for some. */
import { Secret } from "../../../lib/secret.ts";
import type { LedgerStore } from "../../../lib/store/ledger.ts";
import { openMemoryLedger } from "../../../lib/store/memory_ledger.ts";
import { connect } from "../../../lib/store/postgres/client.ts";
import { openPostgresLedger } from "../../../lib/store/postgres/ledger.ts";
import { LEDGER_SHAPE } from "../../../lib/store/postgres/ledger_shape.ts";
import { openSqliteStore } from "../../../lib/store/sqlite.ts";
import { freshDatabase } from "../../engines/engines.ts";

/** A disk with a ledger on it. */
export interface Disk {
  /** The ledger as it is open now. */
  readonly ledger: LedgerStore;
  /** The process dies, and another one opens what is there. */
  crash(): Promise<void>;
  close(): Promise<void>;
}

/** A disk that is none. Whoever opens a ledger voids the holds of the dead: here that is done for it. */
export function openMemoryDisk(change: (store: LedgerStore) => LedgerStore = (store) => store): Disk {
  const ledger = change(openMemoryLedger());
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

/** Hands a test disks in one Postgres database, one after the other: each begins empty. */
export async function withPostgresDisks(test: (disk: () => Promise<Disk>) => Promise<void>): Promise<void> {
  await using database = await freshDatabase();
  const url = new Secret(database.url);
  const beside = connect(url, 1);
  try {
    await test(async () => {
      await beside.unsafe(`DROP SCHEMA public CASCADE; CREATE SCHEMA public; ${LEDGER_SHAPE}`);
      return openPostgresDisk(url);
    });
  } finally {
    await beside.end({ timeout: 1 });
  }
}

/**
 * Nobody knows that a process has died: what it held is void when its lease is over. The server's clock goes on by itself:
 * leases are judged by the times that the run hands in.
 */
function openPostgresDisk(url: Secret): Disk {
  function open() {
    const sql = connect(url, 2);
    return { sql, ledger: openPostgresLedger(sql) };
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
