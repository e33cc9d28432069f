import type { RouteContext } from "../../../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { groupPage } = await import("../../../../lib/console/groups.tsx");
  return groupPage(request, context);
}
