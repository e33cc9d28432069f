/** Opens the store for commands, which may run while a gateway uses it. */
import { faultOf } from "../causes.ts";
import type { Config } from "../config.ts";
import { addressWithoutPassword, type StoreAddress } from "../config/address.ts";
import { openStore } from "../store/open.ts";
import { type Migrated, type Store, StoreError } from "../store/store.ts";
import { writeErr } from "./output.ts";

interface StoreUse {
  /** True if the command only reads; absent: true. A command that writes also migrates an older store. */
  readOnly?: boolean;
  /** True if the command may create the store's file; absent: it may not. */
  mayCreate?: boolean;
}

/**
 * Opens the store of the configuration, runs a function with it, and closes it.
 * @throws {StoreError} if there is none, or it fails
 */
export async function withStore(
  config: Pick<Config, "store">,
  act: (store: Store) => Promise<number>,
  { readOnly = true, mayCreate = false }: StoreUse = {},
): Promise<number> {
  if (config.store.kind === "memory" || config.store.kind === "sqlite" && !mayCreate) requireFile(config.store);
  const store = await openStore(config.store, { readOnly, migrated: reportMigration });
  try {
    return await act(store);
  } catch (cause) {
    throw databaseError(cause, config.store);
  } finally {
    await store.close();
  }
}

/**
 * Returns the error for a database that cannot be used, for example because its file is damaged or the server read-only;
 * for other causes the cause itself.
 */
function databaseError(cause: unknown, address: StoreAddress): unknown {
  if (!(cause instanceof Error) || !("code" in cause)) return cause;
  const fault = faultOf(cause);
  if (address.kind === "postgres" && cause.name === "PostgresError") {
    return new StoreError(`Cannot use the store "${addressWithoutPassword(address)}": ${cause.message}`, { cause });
  }
  if (address.kind !== "sqlite" || cause.code !== "ERR_SQLITE_ERROR" || fault === undefined) return cause;
  const advice = fault === "database damaged" ? "; restore a backup" : "";
  return new StoreError(`Cannot use the store "${address.path}": ${cause.message}${advice}`, { cause });
}

/** Reports on standard error that a store was migrated, and where the copy of its old file is. */
function reportMigration({ from, to, copy }: Migrated): void {
  const backupNote = copy === undefined ? "" : `; the file as it was before is "${copy}"`;
  writeErr(`Migrated the store from schema version ${from} to ${to}${backupNote}\n`);
}

/**
 * Returns the path of the store's file.
 * @throws {StoreError} if there is no file: a command that only reads must not create one
 */
export function requireFile(address: StoreAddress): string {
  if (address.kind === "memory") {
    throw new StoreError('Cannot read the store: it is "memory:", which only the running gateway can see');
  }
  if (address.kind === "postgres") {
    throw new StoreError(
      `Cannot copy the store "${
        addressWithoutPassword(address)
      }": it is a database; use pg_dump, which works while gateways run`,
    );
  }
  const { path } = address;
  if (!fileExists(path)) {
    throw new StoreError(
      `Cannot read the store "${path}": there is no such file; start the gateway once, or set --config or --store`,
    );
  }
  return path;
}

function fileExists(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch (error) {
    // Any other error is reported when the file is opened.
    return !(error instanceof Deno.errors.NotFound);
  }
}
