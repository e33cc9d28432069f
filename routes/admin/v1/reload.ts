import { reload } from "../../../lib/admin/config.ts";
import type { RouteContext } from "../../../lib/server/router.ts";

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return reload(request, context);
}
