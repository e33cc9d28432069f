/** The warning about a journal that cannot be written, which needs access to the disk. */
import type { Config } from "../../config.ts";
import { whyNotWritable } from "../../doctor/journal.ts";
import { type Warning, warning } from "./warning.ts";

/** Returns a warning if the journal cannot be written. Only Postgres needs a journal. */
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
