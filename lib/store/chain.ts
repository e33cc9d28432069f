/** Chains new entries to the last one of a ledger: gives each its sequence number, price version and checksum. */
import { checkSum, type ColumnValue, entryFacts, entryValues, sheetText } from "./entry_row.ts";
import type { Entry, KeptEntry, PriceSheet } from "./ledger.ts";

/** The last entry of a chain, which the next one follows. */
export type ChainHead = Pick<KeptEntry, "seq" | "check">;

/** Entries to write. */
export interface ChainedEntries {
  /** For each given entry, whether it is new. */
  isNew: boolean[];
  kept: KeptEntry[];
  /** The rows of the new entries, in the order of `ENTRY_COLUMNS`. */
  rows: ColumnValue[][];
  sheets: Map<number, PriceSheet>;
}

/**
 * Chains the new ones of some entries.
 * @param chain `versions`: versions of the existing price sheets, by their canonical text; `isNew`: returns whether a
 * request has no entry yet, absent: none has
 */
export function chainEntries(
  entries: readonly Entry[],
  { head, versions, isNew }: {
    head: ChainHead;
    versions: ReadonlyMap<string, number>;
    isNew?: ((id: string) => boolean) | undefined;
  },
): ChainedEntries {
  const chained: ChainedEntries = { isNew: [], kept: [], rows: [], sheets: new Map() };
  let { seq, check } = head;
  const added = new Map<string, number>();
  for (const entry of entries) {
    const isKept = isNew === undefined || isNew(entry.id);
    chained.isNew.push(isKept);
    if (!isKept) continue;
    const text = entry.sheet === undefined ? undefined : sheetText(entry.sheet);
    let priceVersion = text === undefined ? undefined : versions.get(text) ?? added.get(text);
    if (entry.sheet !== undefined && text !== undefined && priceVersion === undefined) {
      priceVersion = versions.size + added.size + 1;
      added.set(text, priceVersion);
      chained.sheets.set(priceVersion, entry.sheet);
    }
    const kept: KeptEntry = { ...entry, priceVersion, seq: ++seq, check };
    const facts = entryFacts(kept);
    check = kept.check = checkSum(kept, check, facts);
    chained.kept.push(kept);
    chained.rows.push(entryValues(kept, facts));
  }
  return chained;
}
