import type { RouteContext } from "../../../lib/server/router.ts";
import { serve } from "../../../lib/request/serve.ts";
import { messages } from "../../../lib/protocols/messages/mod.ts";

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return serve(messages, request, context);
}
