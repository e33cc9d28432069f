/** Pages of `/anthropic/v1/models`, with the parameters of Anthropic's list. */
import { GatewayError } from "../errors.ts";
import type { Model } from "./model.ts";

/** Largest `limit`, as at Anthropic. */
const MAX_LIMIT = 1_000;

/** A page of a list of models. */
export interface ModelPage {
  models: readonly Model[];
  /** True if more models follow or, with `before_id`, precede. */
  hasMore: boolean;
}

/**
 * Returns the page that a query requests: `limit` models after `after_id`, or directly before `before_id`. Without
 * `limit` it has all of them, so that clients that read only one page see every model.
 * @throws {GatewayError} `invalid` if a parameter is
 */
export function takePage(models: readonly Model[], query: URLSearchParams): ModelPage {
  const limit = readLimit(query.get("limit"));
  const [afterId, beforeId] = [query.get("after_id"), query.get("before_id")];
  if (afterId !== null && beforeId !== null) {
    throw new GatewayError("invalid", "Expected after_id or before_id, not both", { param: "before_id" });
  }
  if (beforeId !== null) {
    const end = indexOf(models, { id: beforeId, param: "before_id" });
    const start = Math.max(0, end - limit);
    return { models: models.slice(start, end), hasMore: start > 0 };
  }
  const start = afterId === null ? 0 : indexOf(models, { id: afterId, param: "after_id" }) + 1;
  return { models: models.slice(start, start + limit), hasMore: start + limit < models.length };
}

function readLimit(text: string | null): number {
  if (text === null) return Infinity;
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= MAX_LIMIT) return limit;
  throw new GatewayError("invalid", `Expected a whole number from 1 to ${MAX_LIMIT}`, { param: "limit" });
}

function indexOf(models: readonly Model[], { id, param }: { id: string; param: string }): number {
  const index = models.findIndex((model) => model.id === id);
  if (index < 0) throw new GatewayError("invalid", "No model in the list has this id", { param });
  return index;
}
