/** Serves the API description. */
import { jsonWithEtag } from "../server/json_response.ts";
import type { RouteContext } from "../server/router.ts";
import type { JsonObject } from "../json/mod.ts";
import { openapiDocument } from "./document.ts";

/** By whether a request for images must name its quality. */
const documents = new Map<boolean, JsonObject>();

/** `GET /openapi.json`. A document is made once, at its first request. */
export function serveOpenapi(request: Request, { gateway: { config } }: RouteContext): Promise<Response> {
  const needsQuality = config.images.default_quality === undefined;
  let document = documents.get(needsQuality);
  if (document === undefined) documents.set(needsQuality, document = openapiDocument({ needsQuality }));
  return jsonWithEtag(request, document);
}
