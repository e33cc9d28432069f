import { listModels } from "../../lib/catalog/serve.ts";
import type { RouteContext } from "../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return listModels(request, context, "gemini");
}
