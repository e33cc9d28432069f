import type { RouteContext } from "../../../lib/http/router.ts";
import { serve } from "../../../lib/pipeline/serve.ts";
import { chat } from "../../../lib/protocols/chat/mod.ts";

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return serve(chat, request, context);
}
