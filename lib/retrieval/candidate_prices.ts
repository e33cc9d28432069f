/** Finds the prices of requests for embeddings and reranking, and their highest possible cost. */
import { requireCaller } from "../access/permissions.ts";
import type { Model } from "../catalog/model.ts";
import { pricingAt } from "../catalog/catalog.ts";
import type { Amount } from "../billing/money.ts";
import { costBound, costOfExtras, type ExtraPrices, pricesAt } from "../billing/price.ts";
import { dearestSheet } from "../request/spending_plan.ts";
import type { ArrivedRequest } from "../request/candidates.ts";
import type { BilledExtra, PriceSheet } from "../store/ledger.ts";
import { measureRequest, type RetrievalSize } from "./size.ts";
import type { RetrievalRequest } from "./types.ts";

/** Prices of a request at a model. */
export interface CandidatePrices {
  size: RetrievalSize;
  sheet: Readonly<PriceSheet>;
  /** Prices of large inputs; undefined if they are the same. */
  extraPrices: ExtraPrices | undefined;
  /** USD per search; undefined if searches are free. */
  searchPrice: string | undefined;
  /** Highest possible cost of the request. */
  maxCost: Amount;
}

/** Finds the prices of a request at a model, as of its arrival. */
export function candidatePrices(
  request: RetrievalRequest,
  model: Model,
  { context: { caller }, meter: { entry: { arrivedAt: now } } }: ArrivedRequest,
): CandidatePrices {
  const priceTerms = { factor: requireCaller(caller).group.price_factor, now };
  const { sheet, extraPrices } = pricesAt(model, priceTerms);
  const searchPrice = request.kind === "rerank" ? pricingAt(model, now).request : undefined;
  const size = measureRequest(request, model);
  const maxCost =
    costBound({ input: size.maxTokens, output: 0 }, dearestSheet({ sheet, extraPrices }, size.maxTokens)) +
    costOfExtras(billedSearches(size.maxSearches, searchPrice), sheet);
  return { size, sheet, extraPrices, searchPrice, maxCost };
}

/** Returns the searches as a billed item; none if they are free. */
export function billedSearches(count: number, price: string | undefined): BilledExtra[] {
  return price === undefined || count === 0 ? [] : [{ item: "request", count, price }];
}
