/** A store in a Postgres database, which several nodes may serve from. */
import { addressWithoutPassword } from "../../config/address.ts";
import type { Secret } from "../../secret.ts";
import { openJournal } from "../outage/journal.ts";
import { journaled, type JournaledLedger } from "../outage/journaled_ledger.ts";
import { openPostgresAlerts } from "./alerts.ts";
import { openPostgresAnswers } from "./answers.ts";
import { type Changes, createChanges } from "./changes.ts";
import { connect, isOutOfReach, isPoolerRefusal, migrate, openPool, readShape, type Sql } from "./client.ts";
import { openPostgresConfigs } from "./configs.ts";
import { cacheKeys } from "./key_cache.ts";
import { findKey, openPostgresKeys, readUsedKeys } from "./keys.ts";
import { openPostgresLedger } from "./ledger.ts";
import { MIGRATIONS } from "./migrations.ts";
import {
  type Migrated,
  requireCurrent,
  type SharedStoreOptions,
  type Store,
  StoreError,
  type StoreReach,
} from "../store.ts";

/** Connections of a process: those that keys are read by, and those for all else. A process that serves has one more. */
const KEY_CONNECTIONS = 2;
const CONNECTIONS = 6;

/** Keys that a process has in memory from its start: a node may have to serve without the database before it saw them used. */
const FIRST_KEYS = 10_000;

/** Default lease of a hold, in milliseconds. */
const LEASE_MS = 60_000;

/** Options for opening a database. */
export interface PostgresOptions {
  /** For a process that serves from it; absent: it reads, and changes keys. */
  serving?: SharedStoreOptions;
  /** True for what only reads: tables are neither made nor brought up to date. */
  readOnly?: boolean;
  /** Called when the tables were brought up to date. */
  migrated?: (facts: Migrated) => void;
}

/**
 * Opens the database and, unless it is only read, brings it up to date.
 *
 * @throws {StoreError} where it cannot be reached, or is of another version
 */
export async function openPostgresStore(
  url: Secret,
  { serving, readOnly = false, migrated }: PostgresOptions = {},
): Promise<Store> {
  const opened = new AsyncDisposableStack();
  try {
    const isPooled = await prepare(url, async (sql) => {
      if (readOnly) return requireCurrent(await readShape(sql), MIGRATIONS.length);
      const facts = await migrate(sql);
      if (facts !== undefined) migrated?.(facts);
    });
    const parts = { url, isPooled, opened };
    return serving === undefined ? openPlain(parts) : await openServing(parts, serving);
  } catch (cause) {
    await opened.disposeAsync();
    if (cause instanceof StoreError) throw cause;
    const shown = addressWithoutPassword({ kind: "postgres", url });
    throw new StoreError(`Cannot open the store "${shown}": ${whyNot(cause)}`, { cause });
  }
}

/** Parts of a store that is being opened. */
interface Opening {
  url: Secret;
  isPooled: boolean;
  /** Parts to close, last opened first. */
  opened: AsyncDisposableStack;
}

function openPlain({ url, isPooled, opened }: Opening): Store {
  const { sql } = closing(opened, openPool(() => connect(url, CONNECTIONS, { isPooled })));
  return {
    keys: openPostgresKeys(sql),
    ledger: openPostgresLedger(sql),
    answers: openPostgresAnswers(sql),
    alerts: openPostgresAlerts(sql),
    close: () => opened.disposeAsync(),
  };
}

async function openServing({ url, isPooled, opened }: Opening, options: SharedStoreOptions): Promise<Store> {
  const { keyAgeMs, leaseMs = LEASE_MS, log } = options;
  const pool = closing(opened, openPool(() => connect(url, CONNECTIONS, { isPooled })));
  // Of their own: a key must not wait behind a report.
  const keyPool = closing(opened, openPool(() => connect(url, KEY_CONNECTIONS, { isPooled })));
  const listener = { heard: () => changes.heard(), ended: () => changes.ended() };
  const changes = createChanges({
    pool: closing(opened, openPool(() => connect(url, 1, { isPooled, ...listener }))),
    isPooled,
    stalled() {
      pool.renew();
      keyPool.renew();
    },
    monotonic: () => performance.now(),
    log,
  });
  closing(opened, changes);
  const keys = cacheKeys({
    keys: openPostgresKeys(keyPool.sql),
    find: (asked) => findKey(keyPool.sql, asked),
    changes,
    first: await readUsedKeys(keyPool.sql, FIRST_KEYS),
    keyAgeMs,
  });
  const configs = openPostgresConfigs(keyPool.sql, changes);
  await changes.look();
  if (isPooled) log({ level: "info", event: "store_behind_pooler", changes: "polled" });
  const ledger = closing(opened, await openJournaled(pool.sql, { ...options, leaseMs }));
  return {
    keys,
    ledger,
    answers: openPostgresAnswers(pool.sql),
    alerts: openPostgresAlerts(pool.sql),
    shared: {
      configs,
      reach: () => reachOf(ledger, changes),
      heardMs: () => changes.isUp ? ledger.heardMs() : undefined,
    },
    close: () => opened.disposeAsync(),
  };
}

async function openJournaled(
  sql: Sql,
  { journal: path, journalEntries, leaseMs, log }: SharedStoreOptions & { leaseMs: number },
): Promise<JournaledLedger> {
  const journal = path === undefined ? undefined : await openJournal(path, { maxEntries: journalEntries, log });
  return journaled(openPostgresLedger(sql, { graceMs: leaseMs }), {
    ...(journal !== undefined && { journal }),
    isOutOfReach,
    leaseMs,
    log,
  });
}

/** Keys and the ledger find out by themselves: the store is up where both say so. */
function reachOf(ledger: JournaledLedger, changes: Changes): StoreReach {
  const { up, downMs, waiting } = ledger.reach();
  return { up: up && changes.isUp, downMs: Math.max(downMs, changes.downMs), waiting };
}

function closing<T extends { close(): void | Promise<void> }>(opened: AsyncDisposableStack, part: T): T {
  return opened.adopt(part, (each) => each.close());
}

/** Looks at the tables. Returns whether there is a pooler between, which knows few settings. */
async function prepare(url: Secret, look: (sql: Sql) => Promise<void>): Promise<boolean> {
  try {
    await over(connect(url, 1), look);
    return false;
  } catch (error) {
    if (!isPoolerRefusal(error)) throw error;
  }
  await over(connect(url, 1, { isPooled: true }), look);
  return true;
}

async function over(sql: Sql, look: (sql: Sql) => Promise<void>): Promise<void> {
  try {
    await look(sql);
  } finally {
    await sql.end({ timeout: 0 });
  }
}

function whyNot(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  if (!isOutOfReach(cause)) return cause.message;
  return `the database is out of reach (${cause.message})`;
}
