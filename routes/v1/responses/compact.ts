import type { RouteContext } from "../../../lib/server/router.ts";
import { compactConversation } from "../../../lib/responses/compact_conversation.ts";

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return compactConversation(request, context);
}
