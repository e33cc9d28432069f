import type { RouteContext } from "../../../lib/server/router.ts";
import { generateImages } from "../../../lib/images/serve.ts";

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return generateImages(request, context);
}
