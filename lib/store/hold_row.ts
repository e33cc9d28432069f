/** Converts holds to and from rows, for both databases. */
import { dayOf } from "./days.ts";
import type { BudgetClaim, Hold, MeteredEndpoint, Spender } from "./ledger.ts";

/** A budget claim in JSON. Its amount is a text, because JSON cannot represent large integers. */
export type ClaimJson = Omit<BudgetClaim, "budget"> & { budget: string };

/** A row of `holds`, with integers as the database returns them. */
export interface HoldRow {
  id: string;
  at: number | bigint;
  key_id: string;
  group_name: string;
  model: string;
  endpoint: string;
  amount: string | bigint;
  lease_until: number | bigint;
}

/** Converts the claims of a hold to JSON values. */
export function toClaimsJson(claims: readonly BudgetClaim[]): ClaimJson[] {
  return claims.map((claim) => ({ ...claim, budget: String(claim.budget) }));
}

/** Converts a row to a hold. */
export function toHold(row: HoldRow, claims: readonly ClaimJson[]): Hold {
  return {
    id: row.id,
    at: Number(row.at),
    keyId: row.key_id,
    group: row.group_name,
    model: row.model,
    endpoint: row.endpoint as MeteredEndpoint,
    amount: BigInt(row.amount),
    claims: claims.map((claim) => ({ ...claim, budget: BigInt(claim.budget) })),
    leaseUntil: Number(row.lease_until),
  };
}

/**
 * Returns whether a hold counts against the budget of a key, group or end user. It counts against the budget of an end
 * user only if it claims that budget.
 */
export function countsAgainst(
  { keyId, group, at, claims }: Pick<Hold, "keyId" | "group" | "at" | "claims">,
  { scope, id, since }: Spender,
): boolean {
  if (scope !== "user") return (scope === "key" ? keyId : group) === id && dayOf(at) >= since;
  return claims.some((claim) => claim.scope === "user" && claim.id === id && claim.since === since);
}
