/** Finds the models that may answer a request for embeddings or reranking. */
import type { Model } from "../catalog/model.ts";
import { GatewayError } from "../errors.ts";
import { isObject } from "../json/mod.ts";
import {
  type ArrivedRequest,
  collectCandidates,
  findModel,
  findNamedFallback,
  readPreferences,
} from "../request/candidates.ts";
import type { ProviderPreferences } from "../routing/preferences.ts";
import type { JsonBody } from "../server/parse_body.ts";
import { type CandidatePrices, candidatePrices } from "./candidate_prices.ts";
import type { RetrievalRequest } from "./types.ts";

/** A model that may answer, and the request for it. */
export interface RetrievalCandidate<R extends RetrievalRequest> extends CandidatePrices {
  model: Model;
  request: R;
}

/** Candidates, the preferred one first, and the client's provider preferences. */
export interface RetrievalCandidates<R extends RetrievalRequest> {
  preferences: ProviderPreferences;
  candidates: readonly RetrievalCandidate<R>[];
}

/**
 * Finds the models that a validated body names. For embeddings, all models must have the same vector space, because
 * vectors of different spaces cannot be compared.
 * @throws {GatewayError} as `findCandidates` of lib/request; `invalid` for models of different spaces
 */
export function findRetrievalCandidates<R extends RetrievalRequest>(
  body: JsonBody,
  arrived: ArrivedRequest,
  { kind, read }: { kind: "embedding" | "rerank"; read: (body: JsonBody, model: Model) => R },
): RetrievalCandidates<R> {
  const { context } = arrived;
  const { model: requested, models, provider } = body.value;
  const requestedId = String(requested);
  const first = findModel(requestedId, context, kind);
  const preferences = readPreferences(isObject(provider) ? provider : undefined, context.gateway);
  const ids = new Set([requestedId, ...(Array.isArray(models) ? models.map(String) : [])]);
  const candidates = collectCandidates(ids, preferences, (id) => {
    const model = id === requestedId ? first : findNamedFallback(id, { context, param: "models", kind });
    const request = read(body, model);
    return { model, request, ...candidatePrices(request, model, arrived) };
  });
  for (const { model } of kind === "embedding" ? candidates : []) requireSameSpace(model, first);
  return { preferences, candidates };
}

function requireSameSpace(other: Model, first: Model): void {
  if (other === first) return;
  const space = first.embedding?.space;
  if (space !== undefined && other.embedding?.space === space) return;
  throw new GatewayError(
    "invalid",
    `Model "${other.id}" cannot be a fallback for "${first.id}": their vector spaces differ`,
    { param: "models" },
  );
}
