import { showConfig } from "../../../lib/admin/config.ts";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Response {
  return showConfig(request, context);
}
