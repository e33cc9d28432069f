/** Which limits a request counts against, and how much it takes of each. */
import type { Caller } from "../access/caller.ts";
import type { Limits, Model } from "../catalog/model.ts";
import type { LimitRequest } from "./limiter.ts";

/** Tokens that a request is expected to use. */
export interface TokenEstimate {
  /** Of its input. */
  input: number;
  /** Of its answer. */
  output: number;
}

/** Whose limits a limitRequest can be for. */
export type LimitOwner = "key" | "group" | "model";

/**
 * The limitRequests of a request: its key's limits, or else those its group has for every key, then the group's and the model's.
 *
 * A request whose answer might need more tokens than a whole limit limitRequests that limit: it waits until nothing else counts.
 * A request whose input alone is more limitRequests its input, which is never admitted.
 */
export function limitRequestsOf(
  { caller, model, tokens }: {
    caller: Pick<Caller, "keyId" | "groupName" | "group" | "rules">;
    model: Pick<Model, "id" | "limits">;
    tokens: TokenEstimate;
  },
): LimitRequest[] {
  const { keyId, groupName, group, rules } = caller;
  const limitRequests: LimitRequest[] = [];
  addClaims(limitRequests, { type: "key", id: keyId, limits: rules.limits ?? group.key_limits, tokens });
  addClaims(limitRequests, { type: "group", id: groupName, limits: group.limits, tokens });
  addClaims(limitRequests, { type: "model", id: model.id, limits: model.limits, tokens });
  return limitRequests;
}

/** Whose limit a limitRequest is for, by its name. */
export function limitOwnerOf({ name }: Pick<LimitRequest, "name">): { type: LimitOwner; id: string } {
  const at = name.indexOf(":");
  return { type: name.slice(0, at) as LimitOwner, id: name.slice(at + 1) };
}

function addClaims(
  limitRequests: LimitRequest[],
  { type, id, limits, tokens }: { type: LimitOwner; id: string; limits: Limits | undefined; tokens: TokenEstimate },
): void {
  if (limits === undefined) return;
  const name = `${type}:${id}`;
  const { requests_per_minute: requests, tokens_per_minute: most, concurrency } = limits;
  const reportOnly = limits.report_only === true;
  if (requests !== undefined) limitRequests.push({ name, unit: "requests", limit: requests, cost: 1, reportOnly });
  if (most !== undefined) {
    const cost = Math.min(tokens.input + tokens.output, Math.max(most, tokens.input));
    limitRequests.push({ name, unit: "tokens", limit: most, cost, reportOnly });
  }
  if (concurrency !== undefined) {
    limitRequests.push({ name, unit: "concurrency", limit: concurrency, cost: 1, reportOnly });
  }
}
