/** The nodes' shared configuration in a Postgres database. */
import type { SharedConfigs } from "../store.ts";
import type { Changes } from "./changes.ts";
import type { Sql } from "./client.ts";

/** Opens the configurations of a migrated database. */
export function openPostgresConfigs(sql: Sql, changes: Changes): SharedConfigs {
  const watching = new Set<() => void>();
  /** Latest version that this node read or wrote. */
  let seen = 0;

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
      seen = Math.max(seen, Number(row.version));
      return { version: Number(row.version), text: row.text, at: Number(row.at) };
    },
    async put(text) {
      const [row] = await sql<{ version: bigint }[]>`SELECT configs_put(${text}) AS version`;
      if (row === undefined) throw new Error("Cannot store the configuration: the database returned no version");
      seen = Math.max(seen, Number(row.version));
      return Number(row.version);
    },
    watch(changed) {
      watching.add(changed);
      // The text may be newer than this node's last read although the feed has seen its number already.
      if (changes.config > seen) queueMicrotask(changed);
      return () => void watching.delete(changed);
    },
  };
}
