/** Reports of the nodes of a Postgres database. */
import type { NodeReports } from "../store.ts";
import type { Sql } from "./client.ts";

/** Table of the last report of each node, as JSON. */
export const NODES_SHAPE = `
CREATE TABLE nodes (
  id text COLLATE "C" PRIMARY KEY,
  at bigint NOT NULL,
  facts text NOT NULL
);
`;

/** Opens the reports in a database that is up to date. */
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
