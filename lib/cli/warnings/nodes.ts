/** Warnings about stores that nodes share only in part, and about a node's journal. */
import type { Config } from "../../config.ts";
import { whyNotWritable } from "../../doctor/journal.ts";
import { type Warning, warning } from "./warning.ts";

/** Yields a warning if nodes can share the store but not the limits, or the limits but not the store. */
export function* nodeWarnings({ store, limits_store }: Config): Generator<Warning> {
  if (store.kind === "postgres" && limits_store.kind === "memory") {
    yield warning(
      "limits_store",
      "Several nodes can share this store, but each counts limits separately: put the address of a Redis server " +
        "into SLUICE_LIMITS_STORE, unless there is one node or nothing is limited",
    );
  }
  if (store.kind !== "postgres" && limits_store.kind === "redis") {
    yield warning(
      "limits_store",
      "Limits are counted together with other nodes, but no other node can share this store: put the address " +
        "of a Postgres database into SLUICE_STORE, or leave `limits_store` out",
    );
  }
}

/** Returns a warning if the journal cannot be written. Only Postgres needs one. This needs access to the disk. */
export function journalWarnings({ store, nodes }: Pick<Config, "store" | "nodes">): Warning[] {
  if (store.kind !== "postgres" || nodes.journal === null) return [];
  const why = whyNotWritable(nodes.journal);
  return why === undefined ? [] : [
    warning(
      "nodes.journal",
      `"${nodes.journal}" cannot be written (${why}): name another file, or null to refuse requests with a cost ` +
        "while the store is unreachable",
    ),
  ];
}
