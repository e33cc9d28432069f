import type { RouteContext } from "../../lib/server/router.ts";
import { openResponsesSocket } from "../../lib/responses/responses_socket.ts";
import { serveResponses } from "../../lib/responses/serve_responses.ts";

export function GET(request: Request, context: RouteContext): Response {
  return openResponsesSocket(request, context);
}

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return serveResponses(request, context);
}
