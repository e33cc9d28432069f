import { getModel } from "../../../../lib/catalog/serve.ts";
import { callModel } from "../../../../lib/gemini/call_model.ts";
import type { RouteContext } from "../../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return getModel(request, context, "gemini");
}

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return callModel(request, context);
}
