/** Finds the models that may answer a request: the requested model, then the alternatives that the request names. */
import { requireCaller } from "../access/permissions.ts";
import type { NamedRequest } from "../protocols/canonical/client_parameter_names.ts";
import { PARAMETER_NAMES } from "../protocols/canonical/parameter_names.ts";
import { UnsupportedParameters } from "../protocols/canonical/unsupported_parameters.ts";
import type { Prompt } from "../protocols/canonical/types.ts";
import { kindOfModalities, type Model, type ModelKind } from "../catalog/model.ts";
import { GatewayError, toGatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { RouteContext } from "../server/router.ts";
import type { Meter } from "../billing/meter.ts";
import { pricesAt, type RequestPrices, unitPrices } from "../billing/price.ts";
import { isPayable, NO_PREFERENCES, parsePreferences, type ProviderPreferences } from "../routing/preferences.ts";
import type { ScreenedBody } from "./screened_body.ts";
import { checkModelRules } from "./rules.ts";
import { requirePermitted } from "../catalog/catalog.ts";

/** A model that may answer, the prompt for it, and its prices. The prices are those at the arrival of the request. */
export interface Candidate extends RequestPrices {
  model: Model;
  /** The prompt, adapted to the model. */
  prompt: Prompt;
  /** Parameters that the model does not support. */
  dropped: UnsupportedParameters;
}

/** A request whose meter is open. */
export interface ArrivedRequest {
  context: RouteContext;
  meter: Pick<Meter, "entry">;
}

/** The candidates of a request, and the client's provider preferences. */
export interface Candidates {
  preferences: ProviderPreferences;
  /** At least one candidate, the preferred one first. */
  candidates: readonly Candidate[];
}

/**
 * Finds the models that may answer. A model is skipped if the key may not use it, if it cannot meet the request, or if
 * its price is above the client's maximum.
 * @throws {GatewayError} the first model's error if no model is left; `overloaded` if the client's preferences leave
 * none
 */
export function findCandidates(
  requested: Prompt,
  { context, meter }: ArrivedRequest,
  { body, dropped: removed }: Pick<ScreenedBody, "body" | "dropped">,
): Candidates {
  const { provider, fallbacks, protocol } = requested;
  const { gateway, caller } = context;
  const preferences = readPreferences(provider, gateway);
  const privateNetworks = gateway.config.private_networks;
  const priceTerms = { factor: requireCaller(caller).group.price_factor, now: meter.entry.arrivedAt };
  const client = new ClientRequest(requested, body);
  const candidateOf = (id: string): Candidate => {
    const param = PARAMETER_NAMES[protocol].fallbacks;
    const model = id === requested.model ? findModel(id, context) : findNamedFallback(id, { context, param });
    const dropped = new UnsupportedParameters(client, removed);
    const prompt = checkModelRules(requested, model, dropped, { privateNetworks });
    return { model, prompt, dropped, ...pricesAt(model, priceTerms) };
  };
  const ids = fallbacks === undefined ? [requested.model] : new Set([requested.model, ...fallbacks]);
  return { preferences, candidates: collectCandidates(ids, preferences, candidateOf) };
}

/**
 * A request whose scanned body is parsed only if a name is looked up in it. An object literal with a getter would get a
 * hidden class of its own, which V8 keeps, with the whole request, until the next full garbage collection: requests of 1
 * KB took 10 % more CPU time.
 */
class ClientRequest implements NamedRequest {
  readonly prompt: Prompt;
  readonly #body: ScreenedBody["body"];

  constructor(prompt: Prompt, body: ScreenedBody["body"]) {
    this.prompt = prompt;
    this.#body = body;
  }

  get request(): NamedRequest["request"] {
    return this.#body.value;
  }
}

/** Reads a client's `provider` object. @throws {GatewayError} as `parsePreferences` */
export function readPreferences(provider: Prompt["provider"], gateway: Gateway): ProviderPreferences {
  if (provider === undefined) return NO_PREFERENCES;
  const slugs = Object.keys(gateway.config.upstreams).flatMap((name) => slugsOf(name, gateway));
  return parsePreferences(provider, new Set(slugs));
}

/**
 * Makes a candidate of each model that a request names, by the rules of `findCandidates`.
 * @throws {GatewayError} as `findCandidates`
 */
export function collectCandidates<C extends Pick<Candidate, "model" | "sheet">>(
  ids: Iterable<string>,
  preferences: ProviderPreferences,
  makeCandidate: (id: string) => C,
): C[] {
  let firstError: GatewayError | undefined;
  const usable: C[] = [];
  for (const id of ids) {
    try {
      const candidate = makeCandidate(id);
      // Two names may mean the same model.
      if (!usable.some(({ model }) => model === candidate.model)) usable.push(candidate);
    } catch (thrown) {
      const error = toGatewayError(thrown);
      // A missing model is the client's mistake, even as an alternative.
      if ((error.kind !== "invalid" && error.kind !== "forbidden") || error.code === "model_not_found") throw thrown;
      firstError ??= error;
    }
  }
  if (usable.length === 0 && firstError !== undefined) throw firstError;
  const candidates = preferences === NO_PREFERENCES
    ? usable
    : usable.filter(({ sheet }) => isPayable(preferences, unitPrices(sheet)));
  if (candidates.length === 0) throw noTargetLeft("provider.max_price leaves no model");
  return candidates;
}

/** Returns the error for a request whose preferences exclude every target. The error asks SDKs not to retry. */
export function noTargetLeft(why: string): GatewayError {
  return new GatewayError("overloaded", `Cannot satisfy the request's routing preferences: ${why}`, { final: true });
}

/**
 * Finds an alternative model that a request names in `param`.
 * @throws {GatewayError} as `findModel`, with `param`; a missing model is `invalid`
 */
export function findNamedFallback(
  id: string,
  { context, param, kind }: { context: RouteContext; param: string; kind?: "embedding" | "rerank" },
): Model {
  try {
    return findModel(id, context, kind);
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

/** Returns the names that clients may use for an upstream: its own name and its vendor's. */
export function slugsOf(name: string, { config }: Pick<Gateway, "config">): readonly string[] {
  const vendor = config.upstreams[name]?.vendor;
  return vendor === undefined ? [name] : [name, vendor];
}

/** The things that a model of the wrong kind cannot do, by the kind that an endpoint needs. */
const CANNOT: Readonly<Record<Exclude<ModelKind, "other">, string>> = {
  text: "does not answer in text",
  image: "makes no images at this endpoint",
  embedding: "makes no embeddings",
  rerank: "does not rerank",
};

const ENDPOINT_HINTS: Readonly<Record<ModelKind, string>> = {
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
export function findModel(id: string, context: RouteContext, kind: keyof typeof CANNOT = "text"): Model {
  const { gateway, record } = context;
  const found = gateway.catalog.find(id);
  // The requested model is found before its alternatives. An unknown name could be any text, so it is not recorded.
  record.requestedModel ??= found?.id ?? "other";
  const model = requirePermitted(found, id, { gateway, caller: requireCaller(context.caller) });
  const actual = kindOfModalities(model.architecture.output_modalities);
  if (actual === kind) return model;
  throw new GatewayError("invalid", `Model "${id}" ${CANNOT[kind]}${ENDPOINT_HINTS[actual]}`, { param: "model" });
}
