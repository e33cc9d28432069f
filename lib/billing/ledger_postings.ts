/** Lists the double-entry postings of a ledger entry, and recomputes its charge from its tokens and prices. */
import type { Entry } from "../store/ledger.ts";
import { type Charge, computeCharge } from "./price.ts";
import type { Amount } from "./money.ts";

/** Account of a posting. Customer accounts are liabilities: a debit lowers them, a credit raises them. */
export type LedgerAccount = "customer:available" | "customer:held" | "house:revenue" | "house:overrun";

/** An amount moved from one account to another. */
export interface LedgerPosting {
  kind: "hold" | "settle" | "release" | "overrun";
  debit: LedgerAccount;
  credit: LedgerAccount;
  amount: Amount;
}

/**
 * Returns the postings of an entry, except those of 0. The whole held amount leaves `customer:held`: the cost goes to
 * `house:revenue`, and the rest returns to the customer.
 * @throws {RangeError} for an inconsistent entry: a negative amount, a charge above the hold, or an overrun while part
 * of the hold is unspent
 */
export function listPostings(
  { id, held, cost, overrun }: Pick<Entry, "id" | "held" | "cost" | "overrun">,
): LedgerPosting[] {
  const problem = held < 0n || cost < 0n || overrun < 0n
    ? "an amount is negative"
    : held > 0n && cost > held
    ? "it costs more than its hold"
    : overrun > 0n && cost !== held
    ? "the operator pays although part of the hold is unspent"
    : undefined;
  if (problem !== undefined) throw new RangeError(`Cannot post the entry "${id}": ${problem}`);
  const payer = held > 0n ? "customer:held" : "customer:available";
  const postings: LedgerPosting[] = [
    { kind: "hold", debit: "customer:available", credit: "customer:held", amount: held },
    { kind: "settle", debit: payer, credit: "house:revenue", amount: cost },
    { kind: "release", debit: "customer:held", credit: "customer:available", amount: held > 0n ? held - cost : 0n },
    { kind: "overrun", debit: "house:overrun", credit: "house:revenue", amount: overrun },
  ];
  return postings.filter(({ amount }) => amount > 0n);
}

/**
 * Recomputes cost and overrun of an entry from its tokens, extras, prices and hold. An entry without prices costs 0.
 * @throws {RangeError} for invalid tokens or prices
 */
export function recomputeCharge(
  { tokens, details, sheet, held }: Pick<Entry, "tokens" | "details" | "sheet" | "held">,
): Charge {
  return sheet === undefined
    ? { cost: 0n, overrun: 0n }
    : computeCharge({ tokens, sheet, extras: details?.extras, held });
}
