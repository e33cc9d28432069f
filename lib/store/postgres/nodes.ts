/** The reports of nodes about themselves in a Postgres database. */
import type { NodeReports } from "../store.ts";
import type { Sql } from "./client.ts";

/** A step of the migration: the table of the last report of each node, with its facts as JSON. */
export const NODES_SHAPE = `
CREATE TABLE nodes (
  id text COLLATE "C" PRIMARY KEY,
  at bigint NOT NULL,
  facts text NOT NULL
);
`;

/** Opens the reports of a migrated database. */
export function openPostgresNodes(sql: Sql): NodeReports {
  return {
    async report({ id, at, facts }, forgetBefore) {
      await sql`
        WITH gone AS (DELETE FROM nodes WHERE at < ${forgetBefore} AND id <> ${id})
        INSERT INTO nodes (id, at, facts) VALUES (${id}, ${at}, ${JSON.stringify(facts)})
        ON CONFLICT (id) DO UPDATE SET at = excluded.at, facts = excluded.facts`;
    },
    async list(since) {
      const rows = await sql<{ id: string; at: bigint; facts: string }[]>`
        SELECT id, at, facts FROM nodes WHERE at >= ${since} ORDER BY id`;
      return rows.map(({ id, at, facts }) => ({ id, at: Number(at), facts: JSON.parse(facts) }));
    },
    async leave(id) {
      await sql`DELETE FROM nodes WHERE id = ${id}`;
    },
  };
}
