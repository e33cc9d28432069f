/** From the model id of a request to its row: may the caller use it, is it there, and is this the endpoint for it. */
import { requireCaller } from "../access/caller.ts";
import { requireModel } from "../access/permissions.ts";
import { isExpired, kindOf } from "../catalog/catalog.ts";
import { missingModel } from "../catalog/missing_model.ts";
import type { Model, ModelKind } from "../catalog/model.ts";
import { GatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";

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
  const model = findRow(id, context);
  const actual = kindOf(model);
  if (actual === kind) return model;
  throw new GatewayError("invalid", `Model "${id}" ${NOT_MADE[kind]}${INSTEAD[actual]}`, { param: "model" });
}

/** Finds an alternative model that a request names. @throws {GatewayError} as `findModel` */
export function findFallback(id: string, context: RouteContext, kind?: keyof typeof NOT_MADE): Model {
  return findModel(id, { ...context, record: { ...context.record } }, kind);
}

function findRow(name: string, context: RouteContext): Model {
  const { gateway, record } = context;
  const caller = requireCaller(context.caller);
  const model = gateway.catalog.find(name);
  // Any other name is a text of the client's, which may hold anything.
  record.asked = model?.id ?? "other";
  if (model !== undefined) {
    requireModel(caller, model.id, { name });
    if (!isExpired(model, gateway.now())) return model;
  }
  const missing = missingModel(name, { gateway, caller });
  // A name that lacks only the vendor of a model that the caller may use is a mistake, not a breach.
  if (model === undefined && missing.suggestion === undefined) requireModel(caller, name, { isKnown: false });
  throw missing.error;
}
