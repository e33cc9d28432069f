import type { RouteContext } from "../../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { usagePage } = await import("../../../lib/console/pages.tsx");
  return usagePage(request, context);
}
