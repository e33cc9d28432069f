import type { RouteContext } from "../../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { connectPage } = await import("../../../lib/console/connect.tsx");
  return connectPage(request, context);
}
