import type { RouteContext } from "../../lib/server/router.ts";
import { serveResponses } from "../../lib/responses/serve_responses.ts";

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return serveResponses(request, context);
}
