import { explainUsage } from "../../../../lib/admin/usage.ts";
import type { RouteContext } from "../../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return explainUsage(request, context);
}
