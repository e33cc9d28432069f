/** State that nodes share beside keys and the ledger. */
import type { SharedStore } from "../store.ts";
import type { Changes } from "./changes.ts";
import type { Sql } from "./client.ts";
import { openPostgresConfigs } from "./configs.ts";
import { openPostgresNodes } from "./nodes.ts";

/** Opens it in a database that is up to date. @param sql connections that no report of the ledger keeps busy */
export function openNodeState(sql: Sql, changes: Changes): Pick<SharedStore, "configs" | "nodes"> {
  return { configs: openPostgresConfigs(sql, changes), nodes: openPostgresNodes(sql) };
}
