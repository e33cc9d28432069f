/** Serves the API description. */
import { jsonWithEtag } from "../http/etag.ts";
import type { JsonObject } from "../json.ts";
import { openapiDocument } from "./document.ts";

let document: JsonObject | undefined;

/** `GET /openapi.json`. The document is made once, at the first request. */
export function serveOpenapi(request: Request): Promise<Response> {
  return jsonWithEtag(request, document ??= openapiDocument());
}
