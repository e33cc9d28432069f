/** The configuration that nodes share in a Postgres database. */
import type { SharedConfigs } from "../store.ts";
import type { Changes } from "./changes.ts";
import type { Sql } from "./client.ts";

/** Opens the configurations of a migrated database. @param changes the feed that reports new texts */
export function openPostgresConfigs(sql: Sql, changes: Changes): SharedConfigs {
  const watching = new Set<() => void>();
  /** Latest version that this node read or wrote. */
  let latestSeen = 0;

  changes.watch({
    config() {
      for (const changed of watching) changed();
    },
  });

  return {
    async latest() {
      const [row] = await sql<{ version: bigint; text: string; at: bigint }[]>`
        SELECT version, text, at FROM configs ORDER BY version DESC LIMIT 1`;
      if (row === undefined) return undefined;
      latestSeen = Math.max(latestSeen, Number(row.version));
      return { version: Number(row.version), text: row.text, at: Number(row.at) };
    },
    async put(text) {
      const [row] = await sql<{ version: bigint }[]>`SELECT configs_put(${text}) AS version`;
      if (row === undefined) throw new Error("Cannot store the configuration: the database returned no version");
      latestSeen = Math.max(latestSeen, Number(row.version));
      return Number(row.version);
    },
    watch(changed) {
      watching.add(changed);
      // The feed may already have reported a text that this node has not read yet.
      if (changes.config > latestSeen) queueMicrotask(changed);
      return () => void watching.delete(changed);
    },
  };
}
