/** From the model id of a request to its row: may the caller use it, is it there, and is this the endpoint for it. */
import { requireCaller } from "../access/caller.ts";
import { requireModel } from "../access/permissions.ts";
import { isExpired, isImageModel, isLanguageModel } from "../catalog/catalog.ts";
import { missingModel } from "../catalog/missing_model.ts";
import type { Model } from "../catalog/model.ts";
import { GatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";

/** Finds the model of a text request. @throws {GatewayError} `forbidden`, `not_found`, or `invalid` for an image model */
export function findModel(id: string, context: RouteContext): Model {
  const model = findRow(id, context);
  if (isLanguageModel(model)) return model;
  throw wrongEndpoint(
    `Model "${id}" does not answer in text`,
    isImageModel(model) ? "it makes images: use POST /v1/images/generations or POST /v1/images/edits" : undefined,
  );
}

/** Finds an alternative model that a text request names. @throws {GatewayError} as `findModel` */
export function findFallback(id: string, context: RouteContext): Model {
  return findModel(id, { ...context, record: { ...context.record } });
}

/** Finds the model of an image request. @throws {GatewayError} as `findModel`, and `invalid` for a text model */
export function findImageModel(id: string, context: RouteContext): Model {
  const model = findRow(id, context);
  if (isImageModel(model)) return model;
  throw wrongEndpoint(
    `Model "${id}" makes no images at this endpoint`,
    isLanguageModel(model)
      ? "it answers in text: use POST /v1/chat/completions, POST /v1/responses or POST /anthropic/v1/messages"
      : undefined,
  );
}

function findRow(name: string, context: RouteContext): Model {
  const { gateway, record } = context;
  const caller = requireCaller(context.caller);
  const model = gateway.catalog.find(name);
  // Any other name is a text of the client's, which may hold anything.
  record.asked = model?.id ?? "other";
  if (model !== undefined) {
    requireModel(caller, model.id, name);
    if (!isExpired(model, gateway.now())) return model;
  }
  const missing = missingModel(name, { gateway, caller });
  // A name that lacks only the vendor of a model that the caller may use is a mistake, not a breach.
  if (model === undefined && missing.suggestion === undefined) requireModel(caller, name);
  throw missing.error;
}

function wrongEndpoint(what: string, instead: string | undefined): GatewayError {
  return new GatewayError("invalid", instead === undefined ? what : `${what}: ${instead}`, { param: "model" });
}
