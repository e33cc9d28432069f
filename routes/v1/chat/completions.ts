import type { RouteContext } from "../../../lib/server/router.ts";
import { serve } from "../../../lib/request/serve.ts";
import { chat } from "../../../lib/protocols/chat/mod.ts";

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return serve(chat, request, context);
}
