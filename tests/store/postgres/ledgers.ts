/** Ledgers of several nodes on one fresh database. */
import { Secret } from "../../../lib/secret.ts";
import type { LedgerStore } from "../../../lib/store/ledger.ts";
import { connect, type Sql } from "../../../lib/store/postgres/client.ts";
import { openPostgresLedger, type PostgresLedgerOptions } from "../../../lib/store/postgres/ledger.ts";
import { MIGRATIONS } from "../../../lib/store/postgres/migrations.ts";
import { migratedDatabase } from "./migrated.ts";

/** The SQL that makes the tables of a new database. */
export const TABLES: string = MIGRATIONS.join(";\n");

/** Connections of one node. */
const CONNECTIONS = 3;

/** At least one. */
export type Ledgers = [LedgerStore, ...LedgerStore[]];

/** Opens as many ledgers, each as a node of its own, and hands them to a test, with a connection beside them. */
export async function withLedgers(
  nodes: number,
  test: (ledgers: Ledgers, sql: Sql) => Promise<void>,
  options: PostgresLedgerOptions = {},
): Promise<void> {
  await using database = await migratedDatabase();
  const url = new Secret(database.url);
  const beside = connect(url, 2);
  const pools = Array.from({ length: nodes }, () => connect(url, CONNECTIONS));
  try {
    // The driver never gives a connection of its own to a pool that has not connected.
    await beside`SELECT 1`;
    await test(pools.map((sql) => openPostgresLedger(sql, options)) as Ledgers, beside);
  } finally {
    await Promise.all([beside, ...pools].map((sql) => sql.end({ timeout: 1 })));
  }
}
