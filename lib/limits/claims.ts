/** Which limits a request counts against, and how much it takes of each. */
import type { Caller } from "../access/caller.ts";
import type { Limits, Model } from "../catalog/model.ts";
import type { Claim, LimitUnit } from "./limiter.ts";

/** Tokens that a request is expected to use. */
export interface TokenEstimate {
  /** Of its input. */
  input: number;
  /** Of its answer. */
  output: number;
}

/** Whose limits a claim can be for. */
export type LimitOwner = "key" | "group" | "model";

/**
 * The claims of a request: its key's limits, or else those its group has for every key, then the group's and the model's.
 *
 * A request whose answer might need more tokens than a whole limit claims that limit: it waits until nothing else counts.
 * A request whose input alone is more claims its input, which is never admitted.
 */
export function claimsOf(
  { caller, model, tokens }: {
    caller: Pick<Caller, "keyId" | "groupName" | "group" | "rules">;
    model: Pick<Model, "id" | "limits">;
    tokens: TokenEstimate;
  },
): Claim[] {
  const { keyId, groupName, group, rules } = caller;
  return [
    ...claimsFor({ type: "key", id: keyId }, { limits: rules.limits ?? group.key_limits, tokens }),
    ...claimsFor({ type: "group", id: groupName }, { limits: group.limits, tokens }),
    ...claimsFor({ type: "model", id: model.id }, { limits: model.limits, tokens }),
  ];
}

/** Whose limit a claim is for, by its name. */
export function ownerOf({ name }: Pick<Claim, "name">): { type: LimitOwner; id: string } {
  const at = name.indexOf(":");
  return { type: name.slice(0, at) as LimitOwner, id: name.slice(at + 1) };
}

function claimsFor(
  { type, id }: { type: LimitOwner; id: string },
  { limits, tokens }: { limits: Limits | undefined; tokens: TokenEstimate },
): Claim[] {
  if (limits === undefined) return [];
  const name = `${type}:${id}`;
  const claims: Claim[] = [];
  function add(unit: LimitUnit, limit: number | undefined, cost: number): void {
    if (limit !== undefined) claims.push({ name, unit, limit, cost, reportOnly: limits?.report_only === true });
  }
  const { requests_per_minute: requests, tokens_per_minute: most, concurrency } = limits;
  add("requests", requests, 1);
  add("tokens", most, Math.min(tokens.input + tokens.output, Math.max(most ?? 0, tokens.input)));
  add("concurrency", concurrency, 1);
  return claims;
}
