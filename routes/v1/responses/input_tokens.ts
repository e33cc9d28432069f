import type { RouteContext } from "../../../lib/server/router.ts";
import { countInputTokens } from "../../../lib/responses/count_input_tokens.ts";

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return countInputTokens(request, context);
}
