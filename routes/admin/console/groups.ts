import { groupsPage } from "../../../lib/console/groups.tsx";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return groupsPage(request, context);
}
