/** `GET /openapi.json`: serves the API description for clients. */
import { jsonWithEtag } from "../server/json_response.ts";
import type { RouteContext } from "../server/router.ts";
import type { JsonObject } from "../json/mod.ts";
import { openapiDocument } from "./document.ts";

/** Documents that were built, by whether image requests must name their quality. */
const documents = new Map<boolean, JsonObject>();

/** Returns the description that fits the configuration. It is built at the first request for it. */
export function serveOpenapi(request: Request, { gateway: { config } }: RouteContext): Promise<Response> {
  const needsQuality = config.images.default_quality === undefined;
  let document = documents.get(needsQuality);
  if (document === undefined) documents.set(needsQuality, document = openapiDocument({ needsQuality }));
  return jsonWithEtag(request, document);
}
