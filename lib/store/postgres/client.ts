/** Opens connections to a Postgres database, classifies their errors, and migrates the tables. */
import postgres from "postgres";
import { codeOf } from "../../causes.ts";
import type { Secret } from "../../secret.ts";
import { type Migrated, type MigrationWatch, newerStore, requireCurrent, StoreError } from "../store.ts";
import { NoAnswer, outOfReach } from "../outage/reachability.ts";
import { readPostgresAddress } from "./address.ts";
import { MIGRATIONS } from "./migrations.ts";

/** A connection pool. 64-bit integers are `bigint`. */
export type Sql = postgres.Sql<{ bigint: bigint }>;

/** A connection pool, or a transaction on one of its connections. */
export type Connection = Sql | postgres.TransactionSql<{ bigint: bigint }>;

/** Options for opening a pool. */
export interface ConnectOptions {
  /** True if a transaction pooler is in between, which accepts few startup parameters. */
  isPooled?: boolean;
  /** Called for every notification on a channel that a connection listens to. */
  notified?: () => void;
  /** Called when a connection has ended. */
  disconnected?: () => void;
}

/** Timeout for connecting in seconds, unless the address sets one. */
const CONNECT_TIMEOUT_SECONDS = 2;

/** Delay until the next attempt to connect, in seconds. */
const RECONNECT_SECONDS = 0.1;

/**
 * Settings of every connection. The timeout, in milliseconds, ends the transaction of a stalled node, which would block
 * others. JIT is off, because it would take seconds to compile a report that runs for milliseconds.
 */
const SETTINGS = { synchronous_commit: "on", idle_in_transaction_session_timeout: 3000, jit: "off" };

/**
 * Opens a pool. It connects at the first query.
 * @param connections maximum number of connections
 * @throws {StoreError} if the address is invalid
 */
export function connect(
  url: Secret,
  connections: number,
  { isPooled = false, notified, disconnected }: ConnectOptions = {},
): Sql {
  const { server, options, connection } = readPostgresAddress(url);
  // The driver supports `onnotify`, although its types do not have it.
  const listening = { onnotify: () => notified?.(), onclose: () => disconnected?.() };
  const driverOptions = {
    types: { bigint: postgres.BigInt },
    max: connections,
    connect_timeout: CONNECT_TIMEOUT_SECONDS,
    backoff: () => RECONNECT_SECONDS,
    onnotice: () => {},
    // By default the driver queries types on each new connection, and nothing handles an error of that query: a
    // connection that is lost at that moment would end the process. Without the types, arrays must be sent to the
    // server as JSON.
    fetch_types: false,
    ...(isPooled && { prepare: false }),
    ...options,
    ...listening,
    connection: { application_name: "sluice", ...(isPooled ? {} : SETTINGS), ...connection },
  };
  try {
    return withoutGaps(postgres(server, driverOptions));
  } catch {
    // The driver's message quotes the whole address with its password, so it is not passed on.
    throw new StoreError("Cannot open the store: its address is invalid");
  }
}

/**
 * Wraps a pool to work around a bug of the driver: if a connection is lost in the middle of an answer, the driver keeps
 * its row counter, and the next answer of the pool has as many empty elements before its rows. They are removed from
 * every answer, because code that reads the first element would otherwise find no row.
 */
function withoutGaps(sql: Sql): Sql {
  return new Proxy(sql, {
    apply: (target, self, args) => removeGaps(Reflect.apply(target, self, args)),
    get: (target, name) =>
      name === "unsafe"
        ? (...args: Parameters<Sql["unsafe"]>) => removeGaps(target.unsafe(...args))
        : Reflect.get(target, name),
  });
}

/** Makes a query resolve without empty elements. Other values, such as identifiers, are returned unchanged. */
function removeGaps<Query>(query: Query): Query {
  if (!(query instanceof Promise) || !("resolve" in query) || typeof query.resolve !== "function") return query;
  const { resolve } = query;
  query.resolve = (rows: unknown) => {
    if (Array.isArray(rows)) {
      const existing = rows.filter(() => true);
      if (existing.length < rows.length) rows.splice(0, rows.length, ...existing);
    }
    resolve(rows);
  };
  return query;
}

/** A connection pool that can be replaced with a new one at any time. */
export interface Pool {
  readonly sql: Sql;
  /**
   * Replaces all connections. Later queries get new ones; running queries may take the time that `openPool` was given.
   * If this fails, for example while a certificate file is being renewed, nothing is replaced.
   */
  renew(): void;
  /** Ends the connections after their queries, or after a timeout. */
  close(): Promise<void>;
}

/** Longest wait for running queries when a pool is closed, in seconds. */
const CLOSE_TIMEOUT_SECONDS = 1;

/**
 * Opens a replaceable pool.
 * @param open creates a connection pool; called again at each renewal
 * @param leftMs time left for running queries after a renewal, in milliseconds. Then they are ended, as their
 * connections may be lost without an error
 */
export function openPool(open: () => Sql, leftMs = 0): Pool {
  let current = open();
  /** Replaced pools whose queries may still run, and their timers. */
  const replaced = new Map<Sql, ReturnType<typeof setTimeout>>();

  function end(old: Sql): Promise<void> {
    clearTimeout(replaced.get(old));
    replaced.delete(old);
    return old.end({ timeout: 0 });
  }

  return {
    sql: new Proxy(current, {
      apply: (_target, _this, args) => Reflect.apply(current, undefined, args),
      get: (_target, name) => Reflect.get(current, name),
    }),
    renew() {
      const old = current;
      try {
        current = open();
      } catch {
        // The driver reconnects by itself, with the certificates that it has read before.
        return;
      }
      if (leftMs === 0) void end(old);
      else replaced.set(old, setTimeout(() => void end(old), leftMs));
    },
    async close() {
      await Promise.all([...[...replaced.keys()].map(end), current.end({ timeout: CLOSE_TIMEOUT_SECONDS })]);
    },
  };
}

/** Codes with which the system, the driver and Deno report connections that failed or were lost. */
const CONNECTION_ERRORS = new Set([
  ...["ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "EPIPE", "ETIMEDOUT", "EHOSTUNREACH", "EHOSTDOWN", "ENETUNREACH"],
  ...["ENETDOWN", "ENOTFOUND", "EAI_AGAIN", "EAI_FAIL", "ENOTCONN", "ENOENT", "EADDRNOTAVAIL", "EMFILE", "ENFILE"],
  ...["CONNECTION_CLOSED", "CONNECTION_ENDED", "CONNECTION_DESTROYED", "CONNECT_TIMEOUT"],
]);

/**
 * SQLSTATEs of a server that cannot be used: connection lost (08), authentication failed (28), no such database
 * (3D000), out of disk, memory or connections (53, but not 53400, the limit of one query), shutting down or starting
 * (57P), read-only after a failover (25006), no connections allowed during maintenance (55000).
 */
const UNUSABLE_SERVER = /^(?:08|28|53[0-3]00|57P|3D000|25006|55000)/;

/** Returns whether an error means that the database is unreachable, and not that the query was invalid. */
export function isOutOfReach(error: unknown): boolean {
  if (error instanceof NoAnswer) return true;
  const code = codeOf(error);
  return code !== undefined &&
    (CONNECTION_ERRORS.has(code) || (error instanceof postgres.PostgresError && UNUSABLE_SERVER.test(code)));
}

/**
 * Wraps a part of the store: if the database is unreachable, calls reject with an error for operators and clients.
 * While it is known to be unreachable, they reject at once.
 * @param options `isUp`: returns whether the database is reachable; `exempt`: a call that is made even during an outage
 */
export function reportOutages<Part extends object>(
  part: Part,
  { isUp, exempt }: { isUp: () => boolean; exempt?: keyof Part },
): Part {
  return new Proxy(part, {
    get(target, name) {
      const member = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...values: unknown[]) => {
        if (name !== exempt && !isUp()) return Promise.reject(outOfReach(new NoAnswer()));
        const answer = member.apply(target, values);
        if (!(answer instanceof Promise)) return answer;
        return answer.catch((cause) => {
          throw isOutOfReach(cause) ? outOfReach(cause) : cause;
        });
      };
    },
  });
}

/** Returns whether an error is a timeout. */
export function isTimeout(error: unknown): boolean {
  return error instanceof NoAnswer || codeOf(error) === "CONNECT_TIMEOUT";
}

/** Returns whether an error means that a pooler refused a startup parameter. */
export function isPoolerRefusal(error: unknown): boolean {
  return error instanceof postgres.PostgresError && error.code === "08P01" && /startup parameter/.test(error.message);
}

/** Id of the advisory lock of migrations: an arbitrary number that nothing else uses. */
const MIGRATION_LOCK = 7_584_210_371n;

/**
 * Migrates the tables in one transaction. Nodes that start at the same time wait for the first.
 * @param migrating called before that, unless the database is empty
 * @returns the facts of the migration; `undefined` if the database was empty or up to date
 * @throws {Error} if a newer version has written the tables
 */
export async function migrate(
  sql: Sql,
  migrating?: MigrationWatch["migrating"],
): Promise<Migrated | undefined> {
  const from = await readShape(sql);
  if (from === MIGRATIONS.length) return undefined;
  if (from > 0) migrating?.({ from, to: MIGRATIONS.length });
  return await sql.begin(async (tx) => {
    await endWithConnection(tx);
    await tx`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`;
    // This comes first, because it makes the server refresh its catalog cache, which may lack a table that another node
    // has just created.
    await tx`CREATE TABLE IF NOT EXISTS sluice_shape (version integer NOT NULL)`;
    const version = await readShape(tx);
    if (version === MIGRATIONS.length) return undefined;
    for (const step of MIGRATIONS.slice(version)) await tx.unsafe(step);
    await tx`DELETE FROM sluice_shape`;
    await tx`INSERT INTO sluice_shape VALUES (${MIGRATIONS.length})`;
    return version === 0 ? undefined : { from: version, to: MIGRATIONS.length };
  });
}

/**
 * Makes the server end the transaction within a second after this process was killed. Otherwise it would run a long
 * step to its end before it notices, and the next start would wait for that. Servers before Postgres 14 and those on
 * some systems cannot do it.
 */
async function endWithConnection(tx: postgres.TransactionSql<{ bigint: bigint }>): Promise<void> {
  await tx.savepoint((part) => part`SET LOCAL client_connection_check_interval = 1000`).catch(() => {});
}

/** Checks the tables that are only read. @throws {Error} if another version has made them */
export async function requireMigrated(sql: Sql): Promise<void> {
  requireCurrent(await readShape(sql), MIGRATIONS.length);
}

/** Returns the number of applied steps; 0 without tables. @throws {Error} if it is more than this version knows */
async function readShape(sql: Connection): Promise<number> {
  const [table] = await sql<{ found: boolean }[]>`SELECT to_regclass('sluice_shape') IS NOT NULL AS found`;
  if (table?.found !== true) return 0;
  const [row] = await sql<{ version: number }[]>`SELECT version FROM sluice_shape`;
  const version = row?.version ?? 0;
  if (version <= MIGRATIONS.length) return version;
  throw newerStore(version, MIGRATIONS.length);
}
