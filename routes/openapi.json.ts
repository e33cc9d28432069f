import type { RouteContext } from "../lib/server/router.ts";
import { serveOpenapi } from "../lib/openapi/document.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return serveOpenapi(request, context);
}
