/** An entry of the ledger as double-entry bookkeeping sees it, and its arithmetic done once more. */
import type { Entry } from "../store/ledger.ts";
import { type Charge, computeCharge } from "./charge.ts";
import type { Amount } from "./money.ts";

/** Account of a posting. Customer accounts are liabilities: a debit lowers them, a credit raises them. */
export type LedgerAccount = "customer:available" | "customer:held" | "house:revenue" | "house:overrun";

/** One amount that goes from an account to another. */
export interface LedgerPosting {
  kind: "hold" | "settle" | "release" | "overrun";
  debit: LedgerAccount;
  credit: LedgerAccount;
  amount: Amount;
}

/**
 * The postings of an entry, none of amount 0. What was held leaves `customer:held` whole: as the cost, and back.
 * @throws {RangeError} for an entry that nobody can have meant: a negative amount, more charged than was held, an overrun
 * while something held was left
 */
export function listPostings(
  { id, held, cost, overrun }: Pick<Entry, "id" | "held" | "cost" | "overrun">,
): LedgerPosting[] {
  const wrong = held < 0n || cost < 0n || overrun < 0n
    ? "an amount is negative"
    : held > 0n && cost > held
    ? "it costs more than was held"
    : overrun > 0n && cost !== held
    ? "the house pays although not all that was held is spent"
    : undefined;
  if (wrong !== undefined) throw new RangeError(`Cannot post the entry "${id}": ${wrong}`);
  const payer = held > 0n ? "customer:held" : "customer:available";
  const all: LedgerPosting[] = [
    { kind: "hold", debit: "customer:available", credit: "customer:held", amount: held },
    { kind: "settle", debit: payer, credit: "house:revenue", amount: cost },
    { kind: "release", debit: "customer:held", credit: "customer:available", amount: held > 0n ? held - cost : 0n },
    { kind: "overrun", debit: "house:overrun", credit: "house:revenue", amount: overrun },
  ];
  return all.filter(({ amount }) => amount > 0n);
}

/**
 * What an entry must say of its cost and overrun, from its tokens, what is billed beside them, its prices and what was held
 * alone.
 * @throws {RangeError} for tokens or prices that are none
 */
export function recomputeCharge(
  { tokens, details, sheet, held }: Pick<Entry, "tokens" | "details" | "sheet" | "held">,
): Charge {
  return sheet === undefined
    ? { cost: 0n, overrun: 0n }
    : computeCharge({ tokens, sheet, extras: details?.extras, held });
}
