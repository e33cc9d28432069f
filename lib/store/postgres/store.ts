/** Opens a store in a Postgres database, which several nodes share. */
import { addressWithoutPassword } from "../../config/address.ts";
import type { Secret } from "../../secret.ts";
import { openJournal } from "../outage/journal.ts";
import { createJournaledLedger, type JournaledLedger } from "../outage/journaled_ledger.ts";
import { openPostgresAlerts } from "./alerts.ts";
import { openPostgresAnswers } from "./answers.ts";
import { Changes } from "./changes.ts";
import { openPostgresConfigs } from "./configs.ts";
import {
  connect,
  isOutOfReach,
  isPoolerRefusal,
  migrate,
  openPool,
  reportOutages,
  requireMigrated,
  type Sql,
} from "./client.ts";
import { cacheKeys } from "./key_cache.ts";
import { findKey, openPostgresKeys, readUsedKeys } from "./keys.ts";
import { openPostgresLedger } from "./ledger.ts";
import { openPostgresNodes } from "./nodes.ts";
import { openPostgresOperators } from "./operators.ts";
import { type MigrationWatch, type SharedStoreOptions, type Store, StoreError, type StoreReach } from "../store.ts";

/**
 * Connections of a serving process for keys, for reports, and for everything else, so that neither a key nor an entry
 * waits for a report. It has one more for the change feed. Other processes have those for everything else.
 */
const KEY_CONNECTIONS = 2;
const REPORT_CONNECTIONS = 2;
const CONNECTIONS = 4;

/**
 * Grace period of running calls when connections are replaced, in milliseconds. A late call says nothing about calls on
 * other connections, which may still be answered.
 */
const RUNNING_CALLS_MS = 1_000;

/** Maximum number of keys that are cached at the start, so that they are usable if an outage begins soon. */
const MAX_FIRST_KEYS = 10_000;

/** Default lease of a hold, in milliseconds. */
const LEASE_MS = 60_000;

/** Options for opening a database. */
export interface PostgresOptions extends MigrationWatch {
  /** Options of a serving process; absent: the process only reads and changes keys. */
  serving?: SharedStoreOptions;
  /** True for reading only: tables are neither created nor migrated. */
  readOnly?: boolean;
}

/**
 * Opens the database, and migrates it unless it is only read.
 * @throws {StoreError} if it is unreachable or of another version
 */
export async function openPostgresStore(
  url: Secret,
  { serving, readOnly = false, migrating, migrated }: PostgresOptions = {},
): Promise<Store> {
  const opened = new AsyncDisposableStack();
  try {
    const isPooled = await prepare(url, async (sql) => {
      if (readOnly) return await requireMigrated(sql);
      const facts = await migrate(sql, migrating);
      if (facts !== undefined) migrated?.(facts);
    });
    const parts = { url, isPooled, opened };
    return serving === undefined ? openPlain(parts) : await openServing(parts, serving);
  } catch (cause) {
    await opened.disposeAsync();
    if (cause instanceof StoreError) throw cause;
    const address = addressWithoutPassword({ kind: "postgres", url });
    throw new StoreError(`Cannot open the store "${address}": ${reasonOf(cause)}`, { cause });
  }
}

/** Parts of a store that is being opened. */
interface Opening {
  url: Secret;
  isPooled: boolean;
  /** The parts that have been opened; they are closed in reverse order. */
  opened: AsyncDisposableStack;
}

function openPlain({ url, isPooled, opened }: Opening): Store {
  const { sql } = closeWith(opened, openPool(() => connect(url, CONNECTIONS, { isPooled })));
  return {
    keys: openPostgresKeys(sql),
    ledger: openPostgresLedger(sql),
    answers: openPostgresAnswers(sql),
    alerts: openPostgresAlerts(sql),
    operators: openPostgresOperators(sql),
    close: () => opened.disposeAsync(),
  };
}

async function openServing({ url, isPooled, opened }: Opening, options: SharedStoreOptions): Promise<Store> {
  const { keyAgeMs, leaseMs = LEASE_MS, log } = options;
  const open = (connections: number) =>
    closeWith(opened, openPool(() => connect(url, connections, { isPooled }), RUNNING_CALLS_MS));
  const [pool, reportPool, keyPool] = [open(CONNECTIONS), open(REPORT_CONNECTIONS), open(KEY_CONNECTIONS)];
  const reconnect = () => {
    for (const each of [pool, reportPool, keyPool]) each.renew();
  };
  const ledgerOptions = { ...options, leaseMs, reports: reportPool.sql, reconnect };
  const ledger = closeWith(opened, await openJournaled(pool.sql, ledgerOptions));
  const listener = { notified: () => changes.notified(), disconnected: () => changes.disconnected() };
  const changes = new Changes({
    pool: closeWith(opened, openPool(() => connect(url, 1, { isPooled, ...listener }))),
    isPooled,
    stalled: reconnect,
    isLedgerUp: () => ledger.reach().up,
    monotonic: () => performance.now(),
    log,
  });
  closeWith(opened, changes);
  const keys = cacheKeys({
    keys: openPostgresKeys(keyPool.sql),
    find: (lookup) => findKey(keyPool.sql, lookup),
    changes,
    first: await readUsedKeys(keyPool.sql, MAX_FIRST_KEYS),
    keyAgeMs,
  });
  const configs = openPostgresConfigs(keyPool.sql, changes);
  await changes.poll();
  if (isPooled) log({ level: "info", event: "store_behind_pooler", changes: "polled" });
  const reach = () => reachOf(ledger, changes);
  const isUp = () => reach().up;
  return {
    keys: reportOutages(keys, { isUp, exempt: "findByHash" }),
    ledger,
    answers: reportOutages(openPostgresAnswers(pool.sql), { isUp }),
    alerts: openPostgresAlerts(pool.sql),
    operators: reportOutages(openPostgresOperators(pool.sql), { isUp }),
    shared: {
      configs,
      nodes: openPostgresNodes(keyPool.sql),
      reach,
      msSinceAnswer: () => changes.isReadable ? ledger.msSinceAnswer() : undefined,
    },
    close: () => opened.disposeAsync(),
  };
}

async function openJournaled(
  sql: Sql,
  { journal: path, journalEntries, leaseMs, reports, reconnect, log }:
    & SharedStoreOptions
    & { leaseMs: number; reports: Sql; reconnect: () => void },
): Promise<JournaledLedger> {
  const journal = path === undefined ? undefined : await openJournal(path, { maxEntries: journalEntries, log });
  const rolledBack = () => log({ level: "error", event: "store_rolled_back", lost: "entries of the ledger" });
  return createJournaledLedger(openPostgresLedger(sql, { reports, graceMs: leaseMs, rolledBack }), {
    ...(journal !== undefined && { journal }),
    isOutOfReach,
    reconnect,
    leaseMs,
    log,
  });
}

/** Returns whether the store is reachable. Keys and ledger find outages separately; the store is up if both are. */
function reachOf(ledger: JournaledLedger, changes: Changes): StoreReach {
  const { up, downMs, waiting } = ledger.reach();
  const { isReadable } = changes;
  return { up: up && changes.isUp, isReadable, downMs: Math.max(downMs, changes.downMs), waiting };
}

/** Adds a part to those that are closed with the store, and returns it. */
function closeWith<T extends { close(): void | Promise<void> }>(opened: AsyncDisposableStack, part: T): T {
  return opened.adopt(part, (each) => each.close());
}

/** Runs work on a first connection. Returns whether a pooler is in between, which accepts few startup parameters. */
async function prepare(url: Secret, work: (sql: Sql) => Promise<void>): Promise<boolean> {
  try {
    await runAndClose(connect(url, 1), work);
    return false;
  } catch (error) {
    if (!isPoolerRefusal(error)) throw error;
  }
  await runAndClose(connect(url, 1, { isPooled: true }), work);
  return true;
}

/** Runs work on a pool and closes the pool. */
async function runAndClose(sql: Sql, work: (sql: Sql) => Promise<void>): Promise<void> {
  try {
    await work(sql);
  } finally {
    await sql.end({ timeout: 0 });
  }
}

function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  if (!isOutOfReach(cause)) return cause.message;
  return `the database is unreachable (${cause.message})`;
}
