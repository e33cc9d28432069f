import { listChanges } from "../../../lib/admin/changes.ts";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return listChanges(request, context);
}
