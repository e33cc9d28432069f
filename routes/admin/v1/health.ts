import { health } from "../../../lib/admin/health.ts";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return health(request, context);
}
