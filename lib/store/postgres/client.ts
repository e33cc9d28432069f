/** Connections to a Postgres database, and the tables in it. */
import postgres from "postgres";
import type { Secret } from "../../secret.ts";
import { MIGRATIONS } from "./migrations.ts";

/** A pool of connections. Whole numbers of 64 bits are `bigint`. */
export type Sql = postgres.Sql<{ bigint: bigint }>;

/** What runs within a transaction, or on a connection of its own. */
export type Connection = Sql | postgres.TransactionSql<{ bigint: bigint }>;

/** Longest time for a connection to open, in seconds. */
const CONNECT_SECONDS = 5;

/** Opens a pool. Nothing is connected before the first query. @param connections most at one time */
export function connect(url: Secret, connections: number): Sql {
  return postgres(url.reveal(), {
    types: { bigint: postgres.BigInt },
    max: connections,
    connect_timeout: CONNECT_SECONDS,
    onnotice: () => {},
    connection: { application_name: "sluice", synchronous_commit: "on" },
  });
}

/** One lock for all who bring a database up to date: any number that nobody else uses. */
const MIGRATION_LOCK = 7_584_210_371n;

/** Brings the tables up to date. Nodes that start together wait for the one that does it. */
export async function migrate(sql: Sql): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`;
    await tx`CREATE TABLE IF NOT EXISTS sluice_shape (version integer NOT NULL)`;
    const [row] = await tx<{ version: number }[]>`SELECT version FROM sluice_shape`;
    const version = row?.version ?? 0;
    if (version > MIGRATIONS.length) {
      throw new Error(
        `it was written by a newer version of Sluice (shape ${version}, known up to ${MIGRATIONS.length})`,
      );
    }
    for (const step of MIGRATIONS.slice(version)) await tx.unsafe(step);
    if (row === undefined) await tx`INSERT INTO sluice_shape VALUES (${MIGRATIONS.length})`;
    else if (version < MIGRATIONS.length) await tx`UPDATE sluice_shape SET version = ${MIGRATIONS.length}`;
  });
}
