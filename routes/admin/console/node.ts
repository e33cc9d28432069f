import type { RouteContext } from "../../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { nodePage } = await import("../../../lib/console/pages.tsx");
  return nodePage(request, context);
}
