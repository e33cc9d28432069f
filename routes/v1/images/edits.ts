import type { RouteContext } from "../../../lib/server/router.ts";
import { editImages } from "../../../lib/images/serve.ts";

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return editImages(request, context);
}
