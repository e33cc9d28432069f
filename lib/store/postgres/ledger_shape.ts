/** Tables of the ledger. */
export const LEDGER_SHAPE = ``;
