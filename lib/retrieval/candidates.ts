/** The models that may answer a request for embeddings or reranked documents. */
import { requireCaller } from "../access/caller.ts";
import type { Model } from "../catalog/model.ts";
import { pricingAt } from "../catalog/pricing.ts";
import { GatewayError } from "../errors.ts";
import { isObject } from "../json/mod.ts";
import { mostCost } from "../billing/token_bound.ts";
import type { Amount } from "../billing/money.ts";
import { costOfExtras, type ExtraPrices, extraPricesAt, sheetAt } from "../billing/price.ts";
import { collectCandidates, findNamedFallback, readPreferences } from "../request/candidates.ts";
import { findModel } from "../request/find_model.ts";
import type { ProviderPreferences } from "../routing/preferences.ts";
import type { JsonBody, RouteContext } from "../server/router.ts";
import type { BilledExtra, PriceSheet } from "../store/ledger.ts";
import { measureRequest, type RetrievalSize } from "./size.ts";
import type { RetrievalRequest } from "./types.ts";

/** A model that may answer, and the request as it gets it. */
export interface RetrievalCandidate<R extends RetrievalRequest> {
  model: Model;
  request: R;
  size: RetrievalSize;
  /** Prices at the time of admission. */
  sheet: Readonly<PriceSheet>;
  /** Prices of large inputs; absent: the same. */
  extraPrices: ExtraPrices | undefined;
  /** USD per search; absent: searches cost nothing. */
  searchPrice: string | undefined;
  /** The most that the request can cost. */
  most: Amount;
}

/** Candidates, the preferred one first, and the client's provider preferences. */
export interface RetrievalCandidates<R extends RetrievalRequest> {
  preferences: ProviderPreferences;
  candidates: readonly RetrievalCandidate<R>[];
}

/**
 * Finds the models that a checked body names. Vectors of two spaces cannot be compared, so a request for embeddings names
 * only models of one space.
 * @throws {GatewayError} as `findCandidates` of lib/request; `invalid` for models of different spaces
 */
export function findRetrievalCandidates<R extends RetrievalRequest>(
  body: JsonBody,
  context: RouteContext,
  { kind, read }: { kind: "embedding" | "rerank"; read: (body: JsonBody, model: Model) => R },
): RetrievalCandidates<R> {
  const { model: asked, models, provider } = body.value;
  const wanted = String(asked);
  const first = findModel(wanted, context, kind);
  const preferences = readPreferences(isObject(provider) ? provider : undefined, context.gateway);
  const ids = new Set([wanted, ...(Array.isArray(models) ? models.map(String) : [])]);
  const candidates = collectCandidates(ids, preferences, (id) => {
    const model = id === wanted ? first : findNamedFallback(id, { context, param: "models", kind });
    return candidateOf(model, read(body, model), context);
  });
  if (kind === "embedding") { for (const { model } of candidates) requireSameSpace(model, first); }
  return { preferences, candidates };
}

function requireSameSpace(other: Model, first: Model): void {
  if (other === first) return;
  const space = first.embedding?.space;
  if (space !== undefined && other.embedding?.space === space) return;
  throw new GatewayError(
    "invalid",
    `Model "${other.id}" cannot stand in for "${first.id}": their vectors are not of one space`,
    { param: "models" },
  );
}

function candidateOf<R extends RetrievalRequest>(
  model: Model,
  request: R,
  { gateway, caller }: RouteContext,
): RetrievalCandidate<R> {
  const now = gateway.now();
  const at = { factor: requireCaller(caller).group.price_factor, now };
  const sheet = sheetAt(model, at);
  const extraPrices = extraPricesAt(model, at);
  const searchPrice = request.kind === "rerank" ? pricingAt(model, now).request : undefined;
  const size = measureRequest(request, model);
  const most = mostCost({ input: size.most, output: 0 }, extraPrices?.dearest ?? sheet) +
    costOfExtras(billedSearches(size.mostSearches, searchPrice), sheet);
  return { model, request, size, sheet, extraPrices, searchPrice, most };
}

/** Searches as an item of the bill; none where they cost nothing. */
export function billedSearches(count: number, price: string | undefined): BilledExtra[] {
  return price === undefined || count === 0 ? [] : [{ item: "request", count, price }];
}
