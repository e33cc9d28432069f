/** Formats models for `/v1beta/models`, as in https://ai.google.dev/api/models. */
import { GatewayError } from "../errors.ts";
import type { JsonObject } from "../json/mod.ts";
import type { Model } from "./model.ts";

/** Largest `pageSize` that has an effect, as at Google. */
const MAX_PAGE_SIZE = 1_000;

/** Formats a model. Its name is the id after `models/`. */
export function geminiModel(model: Model): JsonObject {
  const { id, name, description, context_length, top_provider, reasoning } = model;
  return {
    name: `models/${id}`,
    baseModelId: id,
    version: model.canonical_slug,
    displayName: name,
    description,
    inputTokenLimit: context_length,
    outputTokenLimit: top_provider.max_completion_tokens,
    supportedGenerationMethods: ["generateContent", "countTokens"],
    thinking: reasoning !== undefined,
  };
}

/**
 * Formats a page of models: `pageSize` models after the one whose id is `pageToken`. Without `pageSize` it has all of
 * them, so that clients that read only one page see every model.
 * @throws {GatewayError} `invalid` if the size or the token is
 */
export function geminiPage(models: readonly Model[], query: URLSearchParams): JsonObject {
  const size = readSize(query.get("pageSize") ?? query.get("page_size"));
  const token = query.get("pageToken") ?? query.get("page_token");
  const start = token === null || token === "" ? 0 : models.findIndex(({ id }) => id === token) + 1;
  if (token !== null && token !== "" && start === 0) {
    throw new GatewayError("invalid", "No model in the list has this token", { param: "pageToken" });
  }
  const page = models.slice(start, start + size);
  const last = page.at(-1);
  return {
    models: page.map(geminiModel),
    ...(last !== undefined && start + size < models.length && { nextPageToken: last.id }),
  };
}

function readSize(text: string | null): number {
  if (text === null) return Infinity;
  const size = /^\d{1,6}$/.test(text) ? Math.min(Number(text), MAX_PAGE_SIZE) : 0;
  if (size >= 1) return size;
  throw new GatewayError("invalid", "Expected a whole number of at least 1", { param: "pageSize" });
}
