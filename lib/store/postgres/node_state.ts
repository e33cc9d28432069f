/** Opens what nodes share besides keys and ledger: configurations, and their reports about themselves. */
import type { SharedStore } from "../store.ts";
import type { Changes } from "./changes.ts";
import type { Sql } from "./client.ts";
import { openPostgresConfigs } from "./configs.ts";
import { openPostgresNodes } from "./nodes.ts";

/** Opens the shared state of a migrated database. @param sql connections that no report of the ledger keeps busy */
export function openNodeState(sql: Sql, changes: Changes): Pick<SharedStore, "configs" | "nodes"> {
  return { configs: openPostgresConfigs(sql, changes), nodes: openPostgresNodes(sql) };
}
