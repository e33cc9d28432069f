/** Holds as rows of a table of any database. */
import type { BudgetClaim, Hold, MeteredEndpoint } from "./ledger.ts";

/** A budget claim in JSON, which cannot represent large integers. */
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

/** The claims of a hold as JSON. */
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
