/** Opens the configured store. */
import type { StoreAddress } from "../config/address.ts";
import { openMemoryStore } from "./sqlite/memory.ts";
import { olderVersion } from "./sqlite/migrate.ts";
import { MIGRATIONS } from "./sqlite/migrations.ts";
import { openSqliteReader, openSqliteStore } from "./sqlite/store.ts";
import type { MigrationWatch, SharedStoreOptions, Store } from "./store.ts";

/** Options for opening a store. */
export interface OpenOptions extends MigrationWatch {
  /**
   * True for a process that serves from the store. A SQLite file has one such process: others can change keys, and read
   * and prune the ledger, but cannot make holds or write entries. A Postgres database can have many, which cache what
   * they need during outages. A store in memory always belongs to its process.
   */
  own?: boolean;
  /** True for reading only: the store must exist and is not migrated. Writes fail. */
  readOnly?: boolean;
  /** Options for outages of a shared store, for a process that serves from it. */
  shared?: SharedStoreOptions;
}

/** Opens a store. @throws {StoreError} if it cannot be opened, or another process serves from it */
export async function openStore(
  address: StoreAddress,
  { own = false, readOnly = false, shared, migrating, migrated }: OpenOptions = {},
): Promise<Store> {
  switch (address.kind) {
    case "memory":
      return openMemoryStore();
    case "sqlite":
      if (readOnly) return openSqliteReader(address.path);
      if (migrating !== undefined) await announceMigration(address.path, migrating);
      return openSqliteStore(address.path, { own, migrated });
    case "postgres": {
      // Imported lazily: only installations with Postgres load the driver.
      const { openPostgresStore } = await import("./postgres/store.ts");
      return await openPostgresStore(address.url, {
        readOnly,
        ...(own && shared !== undefined && { serving: shared }),
        migrating,
        migrated,
      });
    }
  }
}

/** Calls `migrating` if a file must be migrated, and lets it write its line before the migration blocks the process. */
async function announceMigration(path: string, migrating: NonNullable<MigrationWatch["migrating"]>): Promise<void> {
  const version = olderVersion(path);
  if (version === undefined) return;
  migrating({ from: version, to: MIGRATIONS.length });
  await new Promise((resolve) => setTimeout(resolve, 0));
}
