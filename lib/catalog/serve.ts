/** Serves the lists of models in all formats. A caller sees only the models that it may call. */
import type { Endpoint } from "../access/access_table.ts";
import { mayCall, mayUse, type Permitted, requireCaller } from "../access/permissions.ts";
import { GatewayError } from "../errors.ts";
import { PROTOCOLS } from "../protocols/canonical/types.ts";
import { jsonWithEtag } from "../server/json_response.ts";
import { readTarget } from "../server/route_matcher.ts";
import type { RouteContext } from "../server/router.ts";
import type { JsonObject } from "../json/mod.ts";
import { isExpired, isLanguageModel, kindOf, missingModel, requirePermitted } from "./catalog.ts";
import { CODEX_ENDPOINT, codexList } from "./codex_format.ts";
import { compatibleModel } from "./compatible_format.ts";
import { geminiModel, geminiPage } from "./gemini_format.ts";
import type { Model, ModelKind } from "./model.ts";
import { lifecycleOf, nativeModel } from "./native_format.ts";

/** `compatible` for `/v1/models`, `native` for `/anthropic/v1/models`, `gemini` for `/v1beta/models`. */
export type CatalogFormat = "compatible" | "native" | "gemini";

/** Lists all models that the caller may call. Codex, which sends its version in the query, gets its own format. */
export function listModels(request: Request, context: RouteContext, format: CatalogFormat): Promise<Response> {
  const query = queryOf(request);
  const { models } = context.gateway.catalog;
  const codexVersion = format === "compatible" ? query.get("client_version") : null;
  if (codexVersion !== null) {
    return jsonWithEtag(request, codexList(visibleModels(models, context, "codex"), codexVersion));
  }
  return jsonWithEtag(request, formatList(visibleModels(models, context, format), { query, context, format }));
}

/**
 * Lists the models of the vendor in the path parameter `provider`. If the parameter is the name of a model, returns
 * that model: SDKs escape the slash of an id, and an alias may have no vendor.
 * @throws {GatewayError} `not_found` if the caller may call none
 */
export function listVendor(request: Request, context: RouteContext, format: CatalogFormat): Promise<Response> {
  const vendor = context.params.provider ?? "";
  const models = visibleModels(context.gateway.catalog.vendors.get(vendor) ?? [], context, format);
  if (models.length === 0 && isModelName(vendor, context)) return answerModel(request, { id: vendor, context, format });
  if (models.length === 0) {
    throw new GatewayError("not_found", `No model, and no models of a vendor, have the name "${vendor}"`, {
      code: "model_not_found",
    });
  }
  return jsonWithEtag(request, formatList(models, { query: queryOf(request), context, format }));
}

/**
 * Returns the model in the path parameters `provider` and `model_id`. Without the latter, `provider` is the whole id.
 * @throws {GatewayError} `forbidden` if the caller may not use it; `not_found` if it does not exist, or the caller may
 * not call it for another reason
 */
export function getModel(request: Request, context: RouteContext, format: CatalogFormat): Promise<Response> {
  const { provider = "", model_id: id } = context.params;
  return answerModel(request, { id: id === undefined ? provider : `${provider}/${id}`, context, format });
}

/** Returns whether a text is a model id, or an alias or a name without vendor of a model that the caller may use. */
function isModelName(name: string, { gateway, caller }: RouteContext): boolean {
  if (name.includes("/")) return true;
  const known = requireCaller(caller);
  const model = gateway.catalog.find(name);
  if (model !== undefined && mayUse(known, model.id)) return true;
  return missingModel(name, { gateway, caller: known }).suggestion !== undefined;
}

/** The context of a request, with its caller, and the format of the response. */
interface FormatContext {
  context: RouteContext;
  format: CatalogFormat;
}

interface ModelRequest extends FormatContext {
  id: string;
}

function answerModel(request: Request, { id, context, format }: ModelRequest): Promise<Response> {
  const lookup = { gateway: context.gateway, caller: requireCaller(context.caller) };
  const [model] = visibleModels([requirePermitted(lookup.gateway.catalog.find(id), id, lookup)], context, format);
  if (model === undefined) throw missingModel(id, lookup).error;
  return jsonWithEtag(request, formatModel(model, { context, format }));
}

/**
 * Returns the models that the caller may call and that have not expired. Only the compatible format has models without
 * text output: clients of the other formats cannot call them.
 */
function visibleModels(
  models: readonly Model[],
  { caller, gateway }: RouteContext,
  format: CatalogFormat | "codex",
): Model[] {
  const known = requireCaller(caller);
  const now = gateway.now();
  return models.filter((model) =>
    mayUse(known, model.id) && !isExpired(model, now) && isCallable(model, { caller: known, format })
  );
}

const ENDPOINTS_OF_KIND: Readonly<Record<ModelKind, readonly Endpoint[]>> = {
  text: PROTOCOLS,
  image: ["images"],
  embedding: ["embeddings"],
  rerank: ["rerank"],
  other: PROTOCOLS,
};

function isCallable(
  model: Model,
  { caller, format }: { caller: Permitted; format: CatalogFormat | "codex" },
): boolean {
  if (format === "native") return isLanguageModel(model) && mayCall(caller, "messages");
  if (format === "gemini") return isLanguageModel(model) && mayCall(caller, "gemini");
  if (format === "codex") return isLanguageModel(model) && mayCall(caller, CODEX_ENDPOINT);
  return ENDPOINTS_OF_KIND[kindOf(model)].some((endpoint) => mayCall(caller, endpoint));
}

function formatModel(model: Model, { context, format }: FormatContext): JsonObject {
  const { gateway, caller } = context;
  const now = gateway.now();
  if (format === "gemini") return geminiModel(model);
  if (format === "compatible") return compatibleModel(model, now);
  const { upstreams } = gateway.config;
  return nativeModel(model, now, {
    isAnthropics: model.targets.some(({ upstream }) => upstreams[upstream]?.vendor === "anthropic"),
    hostedTools: requireCaller(caller).group.hosted_tools ?? [],
  });
}

function formatList(
  models: readonly Model[],
  { query, context, format }: FormatContext & { query: URLSearchParams },
): JsonObject {
  const formatAll = (models: readonly Model[]) => models.map((model) => formatModel(model, { context, format }));
  if (format === "compatible") return { object: "list", data: formatAll(models) };
  if (format === "gemini") return geminiPage(models, query);
  // The SDK writes the stages of a list with brackets.
  const stages = [...query.getAll("lifecycle"), ...query.getAll("lifecycle[]")];
  const listed = stages.length === 0 ? models : models.filter((model) => stages.includes(lifecycleOf(model)));
  const page = takePage(listed, query);
  return {
    data: formatAll(page.models),
    has_more: page.hasMore,
    first_id: page.models[0]?.id ?? null,
    last_id: page.models.at(-1)?.id ?? null,
  };
}

function queryOf(request: Request): URLSearchParams {
  return new URLSearchParams(readTarget(request).query);
}

/** Largest `limit`, as at Anthropic. */
const MAX_LIMIT = 1_000;

interface ModelPage {
  models: readonly Model[];
  /** True if more models follow or, with `before_id`, precede. */
  hasMore: boolean;
}

/**
 * Returns the page that a query requests: `limit` models after `after_id`, or directly before `before_id`. Without
 * `limit` it has all of them, so that clients that read only one page see every model.
 * @throws {GatewayError} `invalid` if a parameter is
 */
function takePage(models: readonly Model[], query: URLSearchParams): ModelPage {
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
