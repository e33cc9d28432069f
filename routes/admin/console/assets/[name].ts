import { asset } from "../../../../lib/console/assets.ts";
import type { RouteContext } from "../../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Response {
  return asset(request, context);
}
