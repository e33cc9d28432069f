import { showOwnUsage } from "../../lib/status/own_usage.ts";
import type { RouteContext } from "../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return showOwnUsage(request, context);
}
