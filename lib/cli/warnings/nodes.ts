/** Warnings about several gateways on one store. */
import type { Config } from "../../config.ts";
import type { Warning } from "./warning.ts";

/** Warnings about what nodes share, and what each would have for itself. */
export function nodeWarnings({ store, limits_store }: Config): Warning[] {
  const warnings: Warning[] = [];
  if (store.kind === "postgres" && limits_store.kind === "memory") {
    warnings.push({
      path: "limits_store",
      message:
        "Several nodes can share this store, but each counts limits by itself: put the address of a Redis server " +
        "into SLUICE_LIMITS_STORE, unless there is one node or nothing is limited",
    });
  }
  if (store.kind !== "postgres" && limits_store.kind === "redis") {
    warnings.push({
      path: "limits_store",
      message:
        "Limits are counted together with other nodes, but no other node can share this store: put the address " +
        "of a Postgres database into SLUICE_STORE, or leave `limits_store` out",
    });
  }
  return warnings;
}
