import type { RouteContext } from "../../../../lib/server/router.ts";
import { countTokens } from "../../../../lib/request/count_tokens.ts";

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return countTokens(request, context);
}
