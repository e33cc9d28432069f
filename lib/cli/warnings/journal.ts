/** A warning that needs access to the disk: about the journal of entries that wait for the store. */
import type { Config } from "../../config.ts";
import { whyNotWritable } from "../../doctor/journal.ts";
import { type Warning, warning } from "./warning.ts";

/** A warning about the journal where it cannot be written. Only a store of several nodes needs one. */
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
