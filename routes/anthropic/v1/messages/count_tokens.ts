import type { RouteContext } from "../../../../lib/http/router.ts";
import { countTokens } from "../../../../lib/pipeline/count_tokens.ts";

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return countTokens(request, context);
}
