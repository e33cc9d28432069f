import type { RouteContext } from "../../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { requestsPage } = await import("../../../lib/console/request_list.tsx");
  return requestsPage(request, context);
}
