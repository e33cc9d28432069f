import { audit } from "../../../lib/admin/audit.ts";
import type { RouteContext } from "../../../lib/server/router.ts";

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return audit(request, context);
}
