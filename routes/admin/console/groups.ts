import type { RouteContext } from "../../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { groupsPage } = await import("../../../lib/console/groups.tsx");
  return groupsPage(request, context);
}
