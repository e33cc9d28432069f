import { getModel } from "../../../lib/catalog/serve.ts";
import type { RouteContext } from "../../../lib/server/router.ts";

export { callModel as POST } from "../../../lib/gemini/call_model.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return getModel(request, context, "gemini");
}
