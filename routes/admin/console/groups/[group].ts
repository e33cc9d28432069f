import { groupPage } from "../../../../lib/console/groups.tsx";
import type { RouteContext } from "../../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return groupPage(request, context);
}
