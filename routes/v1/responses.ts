import type { RouteContext } from "../../lib/http/router.ts";
import { serve } from "../../lib/pipeline/serve.ts";
import { responses } from "../../lib/protocols/responses/mod.ts";

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return serve(responses, request, context);
}
