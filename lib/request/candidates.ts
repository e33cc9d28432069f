/** The models that may answer a request: the one it asks for, then those it names to try next. */
import { requireCaller, requireModel } from "../access/permissions.ts";
import { PARAMETER_NAMES } from "../protocols/canonical/parameter_names.ts";
import { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import type { Prompt } from "../protocols/canonical/types.ts";
import { kindOfModalities, type Model, type ModelKind } from "../catalog/model.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { JsonBody } from "../server/body.ts";
import type { RouteContext } from "../server/router.ts";
import { pricesAt, type RequestPrices, unitPrices } from "../billing/price.ts";
import { isPayable, NO_PREFERENCES, parsePreferences, type ProviderPreferences } from "../routing/preferences.ts";
import { checkModelRules } from "./rules.ts";
import { isExpired, missingModel } from "../catalog/catalog.ts";

/** A model that may answer, the prompt for it, and its prices at the time of admission, however long the request takes. */
export interface Candidate extends RequestPrices {
  model: Model;
  /** The prompt, as this model can answer it. */
  prompt: Prompt;
  /** Parameters that the model does not support. */
  dropped: UnsupportedParameters;
}

/** A request body, and the names of members that were removed for every model. */
interface NamedBody {
  body: Pick<JsonBody, "value">;
  dropped: readonly string[];
}

/** Candidates and the client's provider preferences. */
export interface Candidates {
  preferences: ProviderPreferences;
  /** At least one; the preferred one first. */
  candidates: readonly Candidate[];
}

/**
 * Finds the models. A model that the key may not use, that cannot meet the request, or whose price is above what the client
 * allows is passed over where another one is left.
 * @throws {GatewayError} the first one's error where none is left; `overloaded` where the client's preferences leave none
 */
export function findCandidates(prompt: Prompt, context: RouteContext, body: NamedBody): Candidates {
  const { provider, fallbacks } = prompt;
  const preferences = readPreferences(provider, context.gateway);
  const ids = fallbacks === undefined ? [prompt.model] : new Set([prompt.model, ...fallbacks]);
  return {
    preferences,
    candidates: collectCandidates(ids, preferences, (id) => candidateOf(id, prompt, { context, body })),
  };
}

/** Reads a client's `provider` object. @throws {GatewayError} as `parsePreferences` */
export function readPreferences(provider: Prompt["provider"], gateway: Gateway): ProviderPreferences {
  return provider === undefined ? NO_PREFERENCES : parsePreferences(provider, knownSlugs(gateway));
}

/** Makes the candidates of the models that a request names, by the rules of `findCandidates`. @throws as that */
export function collectCandidates<C extends Pick<Candidate, "model" | "sheet">>(
  ids: Iterable<string>,
  preferences: ProviderPreferences,
  candidateOf: (id: string) => C,
): C[] {
  let refusal: GatewayError | undefined;
  const able: C[] = [];
  for (const id of ids) {
    try {
      const candidate = candidateOf(id);
      // Another name of a model that is asked already.
      if (!able.some(({ model }) => model === candidate.model)) able.push(candidate);
    } catch (thrown) {
      const error = toGatewayError(thrown);
      // A model that is not there is a mistake, wherever it is named.
      if ((error.kind !== "invalid" && error.kind !== "forbidden") || error.code === "model_not_found") throw thrown;
      refusal ??= error;
    }
  }
  if (able.length === 0 && refusal !== undefined) throw refusal;
  const candidates = preferences === NO_PREFERENCES
    ? able
    : able.filter(({ sheet }) => isPayable(preferences, unitPrices(sheet)));
  if (candidates.length === 0) throw noTargetLeft("provider.max_price leaves no model");
  return candidates;
}

/** The error when the client's preferences exclude every target. A retry cannot help. */
export function noTargetLeft(why: string): GatewayError {
  return new GatewayError("overloaded", `Cannot satisfy the request's routing preferences: ${why}`, { final: true });
}

function candidateOf(
  id: string,
  original: Prompt,
  { context, body: { dropped: lost, body } }: { context: RouteContext; body: NamedBody },
): Candidate {
  const param = PARAMETER_NAMES[original.protocol].fallbacks;
  const model = id === original.model ? findModel(id, context) : findNamedFallback(id, { context, param });
  const dropped = new UnsupportedParameters();
  for (const name of lost) dropped.add(name);
  const prompt = checkModelRules(original, model, dropped, {
    body,
    privateNetworks: context.gateway.config.private_networks,
  });
  const { group } = requireCaller(context.caller);
  const at = { factor: group.price_factor, now: context.gateway.now() };
  return { model, prompt, dropped, ...pricesAt(model, at) };
}

/** Finds an alternative model that a request names in `param`. @throws {GatewayError} as `findFallback`, with `param` */
export function findNamedFallback(
  id: string,
  { context, param, kind }: { context: RouteContext; param: string; kind?: "embedding" | "rerank" },
): Model {
  try {
    return findFallback(id, context, kind);
  } catch (thrown) {
    const { kind, message, code, refusal } = toGatewayError(thrown);
    // A missing fallback makes the request invalid; the endpoint and the first model do exist.
    throw new GatewayError(kind === "not_found" ? "invalid" : kind, message, {
      param,
      ...(code !== undefined && { code }),
      ...(refusal !== undefined && { refusal }),
    });
  }
}

/** Names that clients may use for an upstream: its own and its vendor's. */
export function slugsOf(name: string, { config }: Pick<Gateway, "config">): readonly string[] {
  const vendor = config.upstreams[name]?.vendor;
  return vendor === undefined ? [name] : [name, vendor];
}

function knownSlugs(gateway: Gateway): ReadonlySet<string> {
  return new Set(Object.keys(gateway.config.upstreams).flatMap((name) => slugsOf(name, gateway)));
}

/** Mismatches of models of another kind, by the kind that an endpoint calls. */
const NOT_MADE: Readonly<Record<Exclude<ModelKind, "other">, string>> = {
  text: "does not answer in text",
  image: "makes no images at this endpoint",
  embedding: "makes no embeddings",
  rerank: "does not rerank",
};

/** Abilities of models by kind, and their endpoints. */
const INSTEAD: Readonly<Record<ModelKind, string>> = {
  text: ": it answers in text: use POST /v1/chat/completions, POST /v1/responses or POST /anthropic/v1/messages",
  image: ": it makes images: use POST /v1/images/generations or POST /v1/images/edits",
  embedding: ": it makes embeddings: use POST /v1/embeddings",
  rerank: ": it reranks documents: use POST /v1/rerank",
  other: "",
};

/**
 * Finds the model of a request to an endpoint for models of one kind.
 * @throws {GatewayError} `forbidden`, `not_found`, or `invalid` for a model of another kind, with the right endpoint
 */
export function findModel(id: string, context: RouteContext, kind: keyof typeof NOT_MADE = "text"): Model {
  const { gateway, record } = context;
  const caller = requireCaller(context.caller);
  const model = gateway.catalog.find(id);
  // Unknown names are free text of the client's.
  record.requestedModel = model?.id ?? "other";
  if (model !== undefined) requireModel(caller, model.id, { name: id });
  if (model === undefined || isExpired(model, gateway.now())) {
    const missing = missingModel(id, { gateway, caller });
    // A name that lacks only the vendor of a model that the caller may use is a mistake, not a breach.
    if (model === undefined && missing.suggestion === undefined) requireModel(caller, id, { isKnown: false });
    throw missing.error;
  }
  const actual = kindOfModalities(model.architecture.output_modalities);
  if (actual === kind) return model;
  throw new GatewayError("invalid", `Model "${id}" ${NOT_MADE[kind]}${INSTEAD[actual]}`, { param: "model" });
}

/** Finds an alternative model that a request names. @throws {GatewayError} as `findModel` */
function findFallback(id: string, context: RouteContext, kind?: keyof typeof NOT_MADE): Model {
  return findModel(id, { ...context, record: { ...context.record } }, kind);
}
