/** Lists the limits that a request counts against, and its cost in each of them. */
import type { Caller } from "../access/permissions.ts";
import type { Limits, Model } from "../catalog/model.ts";
import type { LimitRequest } from "./limiter.ts";

/** Expected tokens of a request. */
export interface TokenEstimate {
  input: number;
  output: number;
}

/** The estimate of a request that is not limited by tokens, or does not exist. */
const NO_TOKENS: TokenEstimate = { input: 0, output: 0 };

/** The owner of a limit. */
export interface LimitOwner {
  type: "key" | "group" | "model";
  id: string;
}

/**
 * Lists the limits of the key, the group and the model. A key without limits of its own has those that its group sets
 * for every key.
 *
 * A request that may need more tokens than a whole limit costs the whole limit: it is admitted when nothing else counts
 * against the limit. If its input alone exceeds the limit, it costs its input, and is never admitted.
 */
export function limitRequestsOf(
  { caller, model, tokens }: {
    caller: Pick<Caller, "keyId" | "groupName" | "group" | "rules">;
    model: Pick<Model, "id" | "limits">;
    tokens: TokenEstimate;
  },
): LimitRequest[] {
  return [
    ...callerLimitRequests(caller, tokens),
    ...limitRequestsFor({ type: "model", id: model.id }, model.limits, tokens),
  ];
}

/** Lists the limits of the key, which may be those that its group sets for every key, and of the group. */
export function callerLimitRequests(
  { keyId, groupName, group, rules }: Pick<Caller, "keyId" | "groupName" | "group" | "rules">,
  tokens: TokenEstimate = NO_TOKENS,
): LimitRequest[] {
  return [
    ...limitRequestsFor({ type: "key", id: keyId }, rules.limits ?? group.key_limits, tokens),
    ...limitRequestsFor({ type: "group", id: groupName }, group.limits, tokens),
  ];
}

/** Parses the owner of a limit from its name. */
export function limitOwnerOf({ name }: Pick<LimitRequest, "name">): LimitOwner {
  const at = name.indexOf(":");
  return { type: name.slice(0, at) as LimitOwner["type"], id: name.slice(at + 1) };
}

/** Returns whether a limit is that of a model. */
export function isModelLimit(limitRequest: Pick<LimitRequest, "name">): boolean {
  return limitOwnerOf(limitRequest).type === "model";
}

/** Lists the limits of an owner. @param tokens absent: the limits are only read */
export function limitRequestsFor(
  { type, id }: LimitOwner,
  limits: Limits | undefined,
  tokens: TokenEstimate = NO_TOKENS,
): LimitRequest[] {
  if (limits === undefined) return [];
  const name = `${type}:${id}`;
  const { requests_per_minute: requests, tokens_per_minute: maxTokens, concurrency, report_only: reportOnly } = limits;
  const limitRequests: LimitRequest[] = [];
  if (requests !== undefined) limitRequests.push({ name, unit: "requests", limit: requests, cost: 1, reportOnly });
  if (maxTokens !== undefined) {
    const cost = Math.min(tokens.input + tokens.output, Math.max(maxTokens, tokens.input));
    limitRequests.push({ name, unit: "tokens", limit: maxTokens, cost, reportOnly });
  }
  if (concurrency !== undefined) {
    limitRequests.push({ name, unit: "concurrency", limit: concurrency, cost: 1, reportOnly });
  }
  return limitRequests;
}
