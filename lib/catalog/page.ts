/** Pages of the list at `/anthropic/v1/models`, by the parameters of Anthropic's list. */
import { GatewayError } from "../errors.ts";
import type { Model } from "./model.ts";

/** Most models of a page, as at Anthropic. */
const MOST = 1_000;

/** A part of a list. */
export interface ModelPage {
  models: readonly Model[];
  /** True where more models follow; with `before_id`, where more come before. */
  hasMore: boolean;
}

/**
 * Takes the page that a query asks for: `limit` models after `after_id`, or right before `before_id`. Without `limit` all
 * of them, so that clients which read one page see every model.
 * @throws {GatewayError} `invalid`
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
  if (limit >= 1 && limit <= MOST) return limit;
  throw new GatewayError("invalid", `Expected a whole number from 1 to ${MOST}`, { param: "limit" });
}

function indexOf(models: readonly Model[], { id, param }: { id: string; param: string }): number {
  const index = models.findIndex((model) => model.id === id);
  if (index < 0) throw new GatewayError("invalid", "The list has no model with this id", { param });
  return index;
}
