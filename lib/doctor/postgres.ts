/**
 * Checks the Postgres database that nodes share: access, speed, durability, clock, tables, connections, notifications.
 */
import { codeOf, faultOf, reasonOf } from "../causes.ts";
import type { Config } from "../config.ts";
import { addressWithoutPassword } from "../config/address.ts";
import type { Sql } from "../store/postgres/client.ts";
import { counted } from "../text.ts";
import { createNotes, type Finding, type Notes } from "./finding.ts";
import type { ConnectionCheckOptions } from "./connection.ts";
import { formatMs, shortestRoundTrip, withTimeout } from "./round_trip.ts";

/** Oldest tested version, as `server_version_num`. */
const OLDEST_VERSION = 130_000;
/** Longest round trip that is not reported, in milliseconds. Requests with a budget wait for some round trips. */
const MAX_ROUND_TRIP_MS = 10;
/**
 * Largest clock difference that is not reported, in milliseconds. Leases use the database's clock, periods that of the
 * node.
 */
const MAX_CLOCK_DIFFERENCE_MS = 5_000;
/** Largest number of connections of a node. */
const NODE_CONNECTIONS = 10;
/** Longest wait for a notification, in milliseconds. */
const NOTIFICATION_TIMEOUT_MS = 2_000;

/** Checks the database without changing it. Returns no findings if the store is not Postgres. */
export async function checkPostgres(
  { store }: Pick<Config, "store">,
  options: ConnectionCheckOptions,
): Promise<Finding[]> {
  const notes = createNotes("store");
  if (store.kind !== "postgres") return notes.found;
  const where = addressWithoutPassword(store);
  // The driver is loaded only if it is needed.
  const { connect, isPoolerRefusal } = await import("../store/postgres/client.ts");
  let sql: Sql | undefined;
  try {
    sql = connect(store.url, 2);
    try {
      await withTimeout(options.timeoutMs, sql`SELECT 1`);
    } catch (error) {
      if (!isPoolerRefusal(error)) throw error;
      await sql.end({ timeout: 1 });
      sql = connect(store.url, 2, { isPooled: true });
      notes.ok("It is behind a pooler");
    }
    await withTimeout(options.timeoutMs, checkDatabase(notes, { sql, where, ...options }));
  } catch (error) {
    notes.error(`${where} cannot be used: ${reasonOf(error)}`, adviceFor(error));
  } finally {
    await sql?.end({ timeout: 1 });
  }
  return notes.found;
}

const REMEDIES: Readonly<Record<string, string>> = {
  "42501": "Use the role that owns the tables, for example after a restore by another one",
  "53300": "Raise max_connections, or the CONNECTION LIMIT of the role and the database",
  "57014": "Remove statement_timeout from the role and the database: the gateway has time limits of its own",
};

function adviceFor(error: unknown): string {
  const fault = faultOf(error);
  if (fault === "disk full") return "Make room on the disk of the database server";
  if (fault?.startsWith("certificate")) {
    return "Check the server's certificate and when it expires, sslrootcert in SLUICE_STORE, and this machine's clock";
  }
  return REMEDIES[codeOf(error) ?? ""] ??
    "Check the address, user and password in SLUICE_STORE, and whether the server accepts this machine";
}

interface PostgresServer extends ConnectionCheckOptions {
  sql: Sql;
  where: string;
}

async function checkDatabase(notes: Notes, server: PostgresServer): Promise<void> {
  const { sql, where } = server;
  const ms = await shortestRoundTrip(() => sql`SELECT 1`);
  if (ms <= MAX_ROUND_TRIP_MS) notes.ok(`${where} answers within ${formatMs(ms)}`);
  else {
    notes.warn(
      `${where} takes ${formatMs(ms)} to answer`,
      "Move gateway and database closer together: requests with a budget wait for it",
    );
  }
  await checkServer(notes, sql);
  await checkClock(notes, server);
  await checkSchema(notes, sql);
  await checkConnections(notes, sql);
  await checkNotifications(notes, sql);
}

async function checkServer(notes: Notes, sql: Sql): Promise<void> {
  const [row] = await sql<
    { name: string; version: number; commits: string; syncs: string; standby: boolean; readonly: boolean }[]
  >`
    SELECT current_setting('server_version') AS name, current_setting('server_version_num')::int AS version,
      current_setting('synchronous_commit') AS commits, current_setting('fsync') AS syncs,
      pg_is_in_recovery() AS standby, current_setting('transaction_read_only') = 'on' AS readonly`;
  if (row === undefined) return;
  if (row.version >= OLDEST_VERSION) notes.ok(`It is Postgres ${row.name}`);
  else notes.warn(`It is Postgres ${row.name}, which is not tested`, "Use version 13 or later");
  if (row.standby) notes.error("It is a read-only standby", "Use the primary server");
  else if (row.readonly) {
    notes.error(
      "It accepts no writes",
      "Remove default_transaction_read_only from the server, the role and the database",
    );
  }
  if (row.syncs === "off") notes.error("fsync is off: a crash of the machine may corrupt everything", "Set fsync = on");
  if (row.commits === "off") {
    notes.error("synchronous_commit is off: a crash loses the last entries", "Remove it from the address");
  } else if (row.syncs !== "off") {
    notes.ok(`Commits are durable (fsync ${row.syncs}, synchronous_commit ${row.commits})`);
  }
}

async function checkClock(notes: Notes, { sql, now }: PostgresServer): Promise<void> {
  const before = now();
  const [row] = await sql<{ at: number }[]>`SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS at`;
  if (row === undefined) return;
  const ahead = (before + now()) / 2 - row.at;
  const text = `${(Math.abs(ahead) / 1000).toFixed(1)} s ${ahead < 0 ? "behind" : "ahead of"} the database's`;
  if (Math.abs(ahead) <= MAX_CLOCK_DIFFERENCE_MS) notes.ok("Its clock agrees with this machine's");
  else {
    notes.warn(
      `This machine's clock is ${text}`,
      "Synchronize both over the network (NTP): leases and expiry depend on them",
    );
  }
}

async function checkSchema(notes: Notes, sql: Sql): Promise<void> {
  const { MIGRATIONS } = await import("../store/postgres/migrations.ts");
  const [schema] = await sql<{ used: boolean; writable: boolean | null }[]>`
    SELECT to_regclass('sluice_shape') IS NOT NULL AS used, has_schema_privilege(current_schema(), 'CREATE') AS writable`;
  if (schema?.used !== true) {
    if (schema?.writable === true) return notes.ok("It has no tables yet; the first start creates them");
    return notes.error(
      "It has no tables yet, and the role may not create them",
      "Grant CREATE on the schema to the role, or make it the owner of the database",
    );
  }
  const [row] = await sql<{ version: number }[]>`SELECT version FROM sluice_shape`;
  const version = row?.version ?? 0;
  if (version > MIGRATIONS.length) {
    notes.error(
      `Its tables are from a newer version of Sluice (schema ${version}, known up to ${MIGRATIONS.length})`,
      "Use that version, or another database",
    );
  } else if (version === MIGRATIONS.length) notes.ok(`Its tables are up to date (schema ${version})`);
  else notes.ok(`Its tables have schema ${version}; the next start migrates them to ${MIGRATIONS.length}`);
  await checkRights(notes, sql);
}

/** Checks the privileges on the tables. All tables of the gateway have the same owner. */
async function checkRights(notes: Notes, sql: Sql): Promise<void> {
  const [row] = await sql<{ lacking: string | null }[]>`
    SELECT string_agg(t.relname, ', ' ORDER BY t.relname) AS lacking
    FROM pg_class AS t JOIN pg_class AS version ON version.oid = to_regclass('sluice_shape')
      AND t.relnamespace = version.relnamespace AND t.relowner = version.relowner
    WHERE t.relkind = 'r' AND NOT (
      has_table_privilege(t.oid, 'SELECT') AND has_table_privilege(t.oid, 'INSERT')
      AND has_table_privilege(t.oid, 'UPDATE') AND has_table_privilege(t.oid, 'DELETE'))`;
  if (typeof row?.lacking !== "string") return;
  notes.error(
    `The role may not read and write all tables: ${row.lacking}`,
    "Grant SELECT, INSERT, UPDATE and DELETE on them, or use the role that owns them",
  );
}

async function checkConnections(notes: Notes, sql: Sql): Promise<void> {
  const [row] = await sql<{ connections: number; machines: number; used: number; limit: number; own: number | null }[]>`
    SELECT count(*) FILTER (WHERE ours)::int AS connections,
      count(DISTINCT client_addr) FILTER (WHERE ours)::int AS machines,
      count(*)::int AS used, current_setting('max_connections')::int AS "limit",
      (SELECT least(
        (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = current_user),
        (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database())
      )) AS own
    FROM (
      SELECT client_addr, datname = current_database() AND application_name = 'sluice'
        AND pid <> pg_backend_pid() AS ours
      FROM pg_stat_activity WHERE backend_type = 'client backend'
    ) AS backends`;
  if (row === undefined) return;
  const { connections, machines, used, limit, own } = row;
  if (connections === 0) notes.ok("No gateway is connected to it");
  else {
    const from = machines === 0 ? "this machine" : counted(machines, "machine");
    notes.ok(`Gateways on ${from} have ${counted(connections, "connection")} to it`);
  }
  if (limit - used < NODE_CONNECTIONS) {
    notes.warn(
      `${used} of its ${limit} connections are in use`,
      `Raise max_connections: a node takes up to ${NODE_CONNECTIONS}`,
    );
  }
  if (own !== null && own < NODE_CONNECTIONS) {
    notes.warn(
      `The role or the database may have only ${counted(own, "connection")}`,
      `Raise its CONNECTION LIMIT: each node takes up to ${NODE_CONNECTIONS}`,
    );
  }
}

/** Checks whether notifications arrive. Poolers in transaction mode lose them. */
async function checkNotifications(notes: Notes, sql: Sql): Promise<void> {
  const channel = `sluice_doctor_${crypto.randomUUID().replaceAll("-", "")}`;
  const notified = Promise.withResolvers<void>();
  try {
    const { unlisten } = await sql.listen(channel, () => notified.resolve());
    await sql.notify(channel, "");
    await withTimeout(NOTIFICATION_TIMEOUT_MS, notified.promise);
    await unlisten();
    notes.ok("Its notifications arrive");
  } catch (error) {
    notes.warn(
      `Its notifications do not arrive (${reasonOf(error)}): changes by other nodes take a few seconds`,
      "Connect to the server itself, or to a pooler in session mode",
    );
  }
}
