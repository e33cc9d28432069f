import type { RouteContext } from "../../../lib/http/router.ts";
import { serve } from "../../../lib/pipeline/serve.ts";
import { messages } from "../../../lib/protocols/messages/mod.ts";

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return serve(messages, request, context);
}
