import type { RouteContext } from "../../lib/server/router.ts";
import { serve } from "../../lib/request/serve.ts";
import { responses } from "../../lib/protocols/responses/mod.ts";

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return serve(responses, request, context);
}
